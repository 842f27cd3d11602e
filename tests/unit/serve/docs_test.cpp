// docs/api.md: every endpoint has an example, and the documented request gets the documented answer.
#include <fstream>
#include <set>

#include "qkv/tasks/vision/run.h"
#include "serve_fixture.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::json;

struct Example {
  std::string method, path, query, body, answer;
};

// ```http blocks, each followed by its ```json block.
std::vector<Example> examples() {
  std::ifstream file(QKV_SOURCE_DIR "/docs/api.md");
  std::vector<Example> out;
  std::string line, *into = nullptr;
  while (std::getline(file, line)) {
    if (line.starts_with("```")) {
      into = nullptr;
      if (line == "```http") {
        out.emplace_back();
        std::getline(file, line);
        Example& e = out.back();
        const size_t blank = line.find(' '), mark = line.find('?');
        e.method = line.substr(0, blank);
        e.path = line.substr(blank + 1, mark == line.npos ? line.npos : mark - blank - 1);
        if (mark != line.npos) e.query = line.substr(mark + 1);
        into = &e.body;
      }
      if (line == "```json") into = &out.back().answer;
      continue;
    }
    if (into) *into += line + "\n";
  }
  return out;
}

// What is documented is there, with the same type; numbers too where no model is involved. "..." ends a list or an
// object that has more.
void expect_covered(const Json& documented, const Json& actual, bool exact, const std::string& where) {
  const bool both_numbers = documented.is_number() && actual.is_number();
  ASSERT_TRUE(both_numbers || documented.type() == actual.type())
      << where << ": documented " << documented << ", got " << actual;
  if (documented.is_object()) {
    for (const auto& [key, value] : documented.items()) {
      if (key == "...") continue;
      ASSERT_TRUE(actual.contains(key)) << where << "." << key << " is documented, but not in the answer";
      expect_covered(value, actual[key], exact, where + "." + key);
    }
    if (documented.contains("...")) return;
    for (const auto& [key, value] : actual.items())
      EXPECT_TRUE(documented.contains(key)) << where << "." << key << " is in the answer, but not documented";
    return;
  }
  if (documented.is_array()) {
    const bool more = !documented.empty() && documented.back() == "...";
    const size_t shown = documented.size() - more;
    ASSERT_LE(exact || more ? shown : std::min<size_t>(shown, 1), actual.size()) << where;
    for (size_t i = 0; i < std::min(shown, actual.size()); ++i)
      expect_covered(documented[i], actual[i], exact, where + "[" + std::to_string(i) + "]");
    EXPECT_TRUE(!exact || more || shown == actual.size()) << where;
    return;
  }
  if (!exact) return;
  if (!both_numbers) {
    EXPECT_EQ(documented, actual) << where;
    return;
  }
  EXPECT_NEAR(documented.get<double>(), actual.get<double>(), 1e-5 * (1 + std::abs(actual.get<double>()))) << where;
}

TEST(ApiDocs, EveryEndpointHasAnExampleThatIsTrue) {
  const fs::path folder = serve_folder("docs");
  fs::create_directories(folder / "runs");
  TranslationRun(small_transformer(), (folder / "runs/1-translation").string(), ExistingRun::discard).train();
  LanguageRun(small_language(folder / "text.txt", 64), (folder / "runs/2-language").string(), ExistingRun::discard)
      .train();
  VisionConfig vision;
  vision.data.images = "pictures";
  vision.data.picture_count = 100;
  vision.model.patch = 7;
  vision.model.hidden = vision.model.ffn = 16;
  vision.model.heads = 2;
  vision.model.layers = 1;
  vision.training.epochs = 1;
  VisionRun(vision, (folder / "runs/3-vision").string(), ExistingRun::discard).train();
  Served served((folder / "runs").string());
  std::string session = "?";
  std::set<std::string> shown;
  for (const Example& e : examples()) {
    SCOPED_TRACE(e.method + " " + e.path);
    if (e.path == "/api/v1/events") continue;  // a stream: tests/cli/serve.sh
    const std::string path = e.path.starts_with("/api/v1/runs/") ? "/api/v1/runs/ID/metrics"
                             : e.path.starts_with("/v1/models/") ? "/v1/models/NAME"
                                                                 : e.path;
    shown.insert(e.method + " " + path);
    std::string body = e.body;
    if (const size_t at = body.find("\"k1\""); at != body.npos) body.replace(at, 4, "\"" + session + "\"");
    const bool exact = body.find("\"model\"") == body.npos && body.find("\"session\"") == body.npos &&
                       e.method == "POST" && e.path.starts_with("/api/");
    const ApiAnswer answer = served.api.answer({e.method, e.path, e.query, body});
    ASSERT_EQ(answer.status, 200) << answer.json;
    const Json actual = Json::parse(answer.json), documented = Json::parse(e.answer);
    if (e.path == "/api/v1/maps") session = actual["session"];
    expect_covered(documented, actual, exact, e.path);
  }
  const auto all = Api::endpoints();
  EXPECT_EQ(shown, std::set<std::string>(all.begin(), all.end()));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace qkv::serve
