// The bench that a figure of a lab names shows the same numbers: the address, read as the page reads it, asked of the
// API, gives what the figure draws.
#include "qkv/report/bench_link.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "qkv/labs/cues.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/render.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/self_attention.h"
#include "qkv/serve/api.h"

namespace qkv::labs {
namespace {

using Json = nlohmann::json;

// The settings of an address, as URLSearchParams and `read` of web/src/store.ts take them: JSON, or else text.
std::map<std::string, Json> settings(const std::string& address) {
  std::map<std::string, Json> out;
  std::istringstream parts(address.substr(address.find('?') + 1));
  for (std::string part; std::getline(parts, part, '&');) {
    std::string value;
    for (size_t i = part.find('=') + 1; i < part.size(); ++i) {
      if (part[i] == '%') {
        value += static_cast<char>(std::stoi(part.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        value += part[i] == '+' ? ' ' : part[i];
      }
    }
    Json json = Json::parse(value, nullptr, false);
    out[part.substr(0, part.find('='))] = json.is_discarded() ? Json(value) : json;
  }
  return out;
}

const Picture& picture(const Page& page, const std::string& name) {
  for (const Block& block : page.blocks())
    if (const auto* p = std::get_if<Picture>(&block); p && p->name == name) return *p;
  throw std::runtime_error("no figure " + name);
}

Json ask(const std::string& path, const Json& body) {
  serve::ModelShelf shelf("");
  serve::EventHub events;
  serve::Api api(shelf, events);
  const serve::ApiAnswer answer = api.answer({"POST", path, "", body.dump()});
  EXPECT_EQ(answer.status, 200) << answer.json;
  return Json::parse(answer.json);
}

// The points that the bench begins with.
std::pair<std::vector<double>, std::vector<double>> points_of_the_page() {
  std::ifstream file(QKV_SOURCE_DIR "/web/src/benches/book_points.ts");
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str(), list = text.substr(0, text.find("bookTruth"));
  static const std::regex pair(R"(\[(-?[0-9.e-]+), (-?[0-9.e-]+)\])");
  std::vector<double> x, y;
  for (std::sregex_iterator it(list.begin(), list.end(), pair), end; it != end; ++it) {
    x.push_back(std::stod((*it)[1]));
    y.push_back(std::stod((*it)[2]));
  }
  return {x, y};
}

Json regress(const std::string& address) {
  auto set = settings(address);
  auto [x, y] = points_of_the_page();
  if (set.contains("points")) {
    x.clear();
    y.clear();
    for (const Json& p : set["points"]) {
      x.push_back(p[0]);
      y.push_back(p[1]);
    }
  }
  return ask("/api/v1/regress", {{"x", x},
                                 {"y", y},
                                 {"kernel", set.contains("kernel") ? set["kernel"] : Json("gaussian")},
                                 {"fit", set.contains("fit") ? set["fit"] : Json("constant")},
                                 {"bandwidth", set.contains("h") ? set["h"] : Json(0.35)},
                                 {"grid", {{"low", 0}, {"high", 5}, {"count", 101}}}});
}

// The dashed curve of a figure, at 0, 0.1, ... 4.9.
const std::vector<double>& predicted(const Picture& p) {
  return std::get<Curves>(p.figure.panels.at(0).content).series.at(1).y;
}

void expect_fit(const Page& page, const std::string& name) {
  const Picture& p = picture(page, name);
  ASSERT_TRUE(p.explore.starts_with("#regression?")) << name << ": " << p.explore;
  const Json fit = regress(p.explore)["fit"];
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(fit[2 * i].get<double>(), predicted(p)[i]) << name << " " << i;
}

TEST(BenchLinks, FitsOfTheRegressionLabAreThoseOfTheBench) {
  for (const uint64_t seed : {0, 3}) {
    Page page(LabOptions{.seed = seed});
    regression::average_step(page);
    regression::plain_step(page);
    regression::learned_step(page);
    for (const char* name : {"average-fit", "plain-fit", "learned-fit"}) expect_fit(page, name);
    EXPECT_EQ(picture(page, "plain-fit").explore.find("points") == std::string::npos, seed == 0);
  }
}

TEST(BenchLinks, TheBenchBeginsWithThePointsOfTheLab) {
  const regression::Sample sample = regression::page_sample(Page(LabOptions{}));
  const auto [x, y] = points_of_the_page();
  EXPECT_EQ(x, sample.x);
  EXPECT_EQ(y, sample.y);
}

TEST(BenchLinks, WeightsOfTheLabsAreThoseOfTheBench) {
  Page page(LabOptions{});
  cues::identity_map(page);
  cues::random_map(page);
  scoring::masking(page);
  scoring::equal_keys(page);
  scoring::different_keys(page);
  scoring::measures(page);
  scoring::vector_sum(page);
  scoring::distance(page);
  // Panel of the figure that the bench shows.
  for (const auto& [name, panel] : {std::pair{"identity", 0},
                                    {"random-softmax", 0},
                                    {"masked-softmax", 0},
                                    {"equal-keys", 1},
                                    {"different-keys", 4},
                                    {"measures", 1},
                                    {"vector-sum", 1},
                                    {"distance", 1}}) {
    const Picture& p = picture(page, name);
    auto set = settings(p.explore);
    ASSERT_TRUE(p.explore.starts_with("#scores?")) << p.explore;
    Json body = {{"score", set.contains("score") ? set["score"] : Json("scaled-dot")},
                 {"q", set["q"]},
                 {"k", set["k"]},
                 {"v", set["v"]}};
    if (body["score"] == "gaussian") body["bandwidth"] = 1;
    if (set.contains("lens")) body["lens"] = Json::parse("[" + set["lens"].get<std::string>() + "]");
    SCOPED_TRACE(name);
    const Json weights = ask("/api/v1/attend", body)["steps"][3]["values"];
    const Tensor& drawn = std::get<HeatMap>(p.figure.panels.at(static_cast<size_t>(panel)).content).values;
    ASSERT_EQ(weights.size(), static_cast<size_t>(drawn.size(0)));
    for (int64_t i = 0; i < drawn.size(0); ++i)
      for (int64_t j = 0; j < drawn.size(1); ++j) {
        const auto weight = weights[static_cast<size_t>(i)][static_cast<size_t>(j)].get<float>();
        // A softmax on its own adds in another order than attention does.
        if (std::string(name).ends_with("softmax"))
          EXPECT_FLOAT_EQ(weight, drawn.at({i, j}));
        else
          EXPECT_EQ(weight, drawn.at({i, j}));
      }
  }
}

// The settings of a bench, as its source declares them.
std::set<std::string> known_settings(const std::string& bench) {
  std::ifstream file(QKV_SOURCE_DIR "/web/src/benches/" + bench + ".tsx");
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str(), mark = "settings('" + bench + "', {";
  const size_t begin = text.find(mark);
  EXPECT_NE(begin, text.npos) << bench;
  const std::string list = text.substr(begin + mark.size(), text.find("})", begin) - begin - mark.size());
  static const std::regex name(R"((?:^|[,{\n])\s*([a-z_0-9]+): )");
  std::set<std::string> out;
  for (std::sregex_iterator it(list.begin(), list.end(), name), end; it != end; ++it) out.insert((*it)[1]);
  return out;
}

// Figures whose numbers a bench shows. The others are of random or trained models that are nowhere on disk, of many
// data sets, have more numbers than one would write into cells, or show something that no bench has.
TEST(BenchLinks, EveryFigureThatABenchShowsNamesItAndTheOthersSayNothing) {
  const std::map<std::string, std::set<std::string>> wanted = {
      {"10.1", {"desk-weights", "identity", "random-softmax"}},
      {"10.2",
       {"three-people", "average-fit", "plain-fit", "plain-weights", "learned-fit", "learned-weights", "kernel-fits",
        "kernel-weights", "width-fits", "width-weights"}},
      {"10.3", {"masked-softmax", "equal-keys", "different-keys", "measures", "vector-sum", "distance"}},
      {"10.6", {"position-columns", "position-map", "position-products"}}};
  for (const Lab& lab : all_labs()) {
    if (lab.section != "0" && !wanted.contains(lab.section)) continue;  // labs of trained models take minutes
    Page page(LabOptions{.quick = true});
    run(lab, page, {}, {});
    std::set<std::string> linked;
    for (const Block& block : page.blocks()) {
      const auto* p = std::get_if<Picture>(&block);
      if (!p || p->explore.empty()) continue;
      SCOPED_TRACE(lab.section + " " + p->name + " " + p->explore);
      linked.insert(p->name);
      const std::string bench = p->explore.substr(1, p->explore.find('?') - 1);
      const auto known = known_settings(bench);
      for (const auto& [key, value] : settings(p->explore)) EXPECT_TRUE(known.contains(key)) << key;
    }
    const auto found = wanted.find(lab.section);
    EXPECT_EQ(linked, found == wanted.end() ? std::set<std::string>{} : found->second) << lab.section;
  }
}

TEST(BenchLinks, PositionsOfTheSelfAttentionLabAreThoseOfTheBench) {
  Page page(LabOptions{});
  self_attention::encoding(page);
  self_attention::binary(page);
  self_attention::relative_positions(page);
  const auto asked = [&](const Picture& p) {
    auto set = settings(p.explore);
    EXPECT_TRUE(p.explore.starts_with("#positions?")) << p.explore;
    return ask("/api/v1/positions", {{"kind", set.contains("kind") ? set["kind"] : Json("sinusoidal")},
                                     {"length", set["length"]},
                                     {"width", set["width"]},
                                     {"offset", set["offset"]}});
  };
  const Picture& whole = picture(page, "position-map");
  const Json map = asked(whole)["map"];
  const Tensor& drawn = std::get<HeatMap>(whole.figure.panels.at(0).content).values;
  ASSERT_EQ(map.size(), static_cast<size_t>(drawn.size(0)));
  for (int64_t i = 0; i < drawn.size(0); ++i)
    for (int64_t j = 0; j < drawn.size(1); ++j)
      EXPECT_EQ(map[static_cast<size_t>(i)][static_cast<size_t>(j)].get<float>(), drawn.at({i, j}));
  const Picture& columns = picture(page, "position-columns");
  const Json same = asked(columns)["map"];
  const auto& series = std::get<Curves>(columns.figure.panels.at(0).content).series;
  for (size_t c = 0; c < series.size(); ++c)
    for (size_t i = 0; i < series[c].y.size(); ++i)
      EXPECT_EQ(same[i][6 + c].get<float>(), static_cast<float>(series[c].y[i]));
}

TEST(BenchLinks, AreEscapedAsTheBrowserDoesIt) {
  EXPECT_EQ(report::BenchLink("heads").set("text", "a b&c=é\"<>#%+").set("layer", 2.0).set("on", true).address(),
            "#heads?text=a+b%26c%3D%C3%A9%22%3C%3E%23%25%2B&layer=2&on=true");
  EXPECT_EQ(report::BenchLink("scores").set("q", Tensor({2, 2}, {1, -0.1f, 1e-7f, 3})).address(),
            "#scores?q=%5B%5B1%2C-0.1%5D%2C%5B1e-07%2C3%5D%5D");
  EXPECT_EQ(report::BenchLink("cues").address(), "#cues");
}

TEST(BenchLinks, AreBelowTheFigure) {
  Picture p{"a", Figure{}, tr("Keys"), "#regression?h=1"};
  const std::string plain_text = plain(p, Language::en);
  EXPECT_NE(plain_text.find("explore: qkv serve, #regression?h=1\n"), std::string::npos) << plain_text;
  p.explore = "#scores?q=" + std::string(500, '1');
  EXPECT_NE(plain(p, Language::en).find("explore: qkv serve, #scores (the whole address is in the HTML report)"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv::labs
