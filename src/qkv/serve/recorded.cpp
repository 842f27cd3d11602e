// Asks the API what the page will ask, and puts the answers into the page.
#include "qkv/serve/recorded.h"

#include <algorithm>
#include <set>

#include "qkv/report/bench_link.h"
#include "qkv/serve/call.h"
#include "qkv/serve/page.h"
#include "qkv/serve/page_file.h"

namespace qkv::serve {
namespace {

constexpr int64_t kTileSide = 256;  // cells of a tile of the page

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

class PageRecorder {
 public:
  PageRecorder(const std::string& folder, const RecordOptions& options)
      : o_(options), shelf_(folder), api_(shelf_, events_) {
    shelf_.scan();
    require(!shelf_.models().empty(), "{folder}: is not a run folder", "folder"_a = folder);
  }

  RecordedPage page() {
    const Json models = ask("GET", "/models", {});
    add("/models", Json::object(), {}, models);
    model_ = models["models"][0];
    require(model_["usable"].get<bool>(), "{name}: has no weights yet", "name"_a = model_["name"].get<std::string>());
    const std::string start = model_["task"] == "language" ? language() : translation();
    const Json block = {{"open", start}, {"requests", requests_}, {"left_out", said()}};
    // The engine takes up where the recorded answers end.
    std::vector<EngineFile> files;
    if (page_engine()) files = engine_files(shelf_.models()[0].folder, model_["name"], o_.most_bytes / 4);
    return {with_block(block, files.empty() ? "" : engine_block(files)), title_, left_out_};
  }

 private:
  Json ask(const std::string& method, const std::string& path, const Json& body) {
    const ApiAnswer answer =
        api_.answer({method, "/api/v1" + path, "", method == "GET" ? "" : json_text(body), o_.language});
    Json out = Json::parse(answer.json);
    if (answer.status == 200) return out;
    throw Error(verbatim(out.value("error", "?")), verbatim(out.value("hint", "")));
  }

  // An answer to every question that has these fields and none of the others.
  void add(const std::string& path, const Json& body, const std::vector<std::string>& without, const Json& answer) {
    requests_.push_back({{"path", path}, {"body", body}, {"without", without}, {"answer", answer}});
    bytes_ += std::ssize(json_text(answer));
  }

  std::string language() {
    const Json body = {{"model", model_["id"]}, {"prompt", o_.text}, {"temperature", 0.8}, {"top", 20}};
    const Json answer = ask("POST", "/next", body);
    add_tiles(answer, "decoder");
    add("/next", {{"model", model_["id"]}, {"prompt", o_.text}, {"temperature", 0.8}}, {"edits"}, answer);
    title_ = o_.text;
    report::BenchLink link("language");
    link.set("prompt", o_.text);
    if (o_.layer) link.set("layer", static_cast<double>(*o_.layer));
    if (o_.head) link.set("head", static_cast<double>(*o_.head));
    return address(link);
  }

  std::string translation() {
    const bool has_heads = model_["kind"] == "transformer";
    const Json question = {{"model", model_["id"]}, {"text", o_.text}};
    Json translate = question;
    translate.update({{"beam", o_.beam.value_or(4)}, {"hypotheses", o_.beam.value_or(4)}, {"top", 6}, {"tree", true}});
    if (o_.target) translate["force"] = *o_.target;
    const Json translated = ask("POST", "/translate", translate);
    const Json& hypotheses = translated["hypotheses"];
    title_ = o_.target.value_or(hypotheses.empty() ? "" : hypotheses[0]["text"].get<std::string>());
    report::BenchLink link(has_heads ? "heads" : "translate");
    link.set("text", o_.text);
    if (has_heads) {
      heads(question);
      if (o_.part) link.set("name", *o_.part);
      if (o_.layer) link.set("layer", static_cast<double>(*o_.layer));
      if (o_.head) link.set("head", static_cast<double>(*o_.head));
    } else {
      if (o_.target) link.set("force", *o_.target).set("rank", -1.0);
      if (o_.beam) link.set("beam", static_cast<double>(*o_.beam));
    }
    Json key = {{"model", model_["id"]}, {"text", o_.text}, {"beam", translate["beam"]}};
    if (o_.target && !has_heads) key["force"] = *o_.target;
    if (bytes_ + std::ssize(json_text(translated)) > o_.most_bytes && has_heads)
      left_out_.push_back(tr("the bench Translate: its answer does not fit"));
    else
      add("/translate", key,
          o_.target && !has_heads ? std::vector<std::string>{"reference", "edits"}
                                  : std::vector<std::string>{"force", "reference", "edits"},
          translated);
    return address(link);
  }

  void heads(const Json& question) {
    const auto& parts = model_["maps"];
    const std::string first = o_.part.value_or(
        std::ranges::find(parts, Json("cross")) != parts.end() ? "cross" : parts[0].get<std::string>());
    std::string target;
    for (const Json& name : parts) {
      Json body = question;
      body["name"] = name;
      body["measure"] = "importance";
      if (o_.target) body["target"] = *o_.target;
      const Json answer = ask("POST", "/heads", body);
      target = answer["baseline"]["text"];
      body.erase("target");
      body.erase("measure");
      add("/heads", body, {"off", "edits", "target"}, answer);
    }
    title_ = target;
    Json body = question;
    body["target"] = target;
    const Json answer = ask("POST", "/maps", body);
    add("/maps", body, {"edits"}, answer);
    add_tiles(answer, first);
  }

  // Maps that are too large for an answer are tiles, as the page asks for them (web/src/views/tiles.tsx): level 0 is
  // exact, and a cell of every further level is the maximum over twice as many rows and columns. Overviews come first,
  // and on each level the map that is shown first, then those of its part, as long as there is room.
  void add_tiles(const Json& answer, const std::string& first) {
    std::vector<const Json*> maps;
    for (const Json& map : answer["maps"])
      if (!map.contains("values")) maps.push_back(&map);
    const auto rank = [&](const Json* map) {
      const bool shown = (*map)["layer"] == o_.layer.value_or(1) && (*map)["head"] == o_.head.value_or(1);
      return (*map)["name"] != first ? 2 : shown ? 0 : 1;
    };
    std::stable_sort(maps.begin(), maps.end(), [&](const Json* a, const Json* b) { return rank(a) < rank(b); });
    const auto levels = [](const Json* map) {
      const int64_t longest = std::max((*map)["shape"][0].get<int64_t>(), (*map)["shape"][1].get<int64_t>());
      int64_t level = 0;
      while (longest > kTileSide << level) ++level;
      return level;
    };
    int64_t top = 0;
    for (const Json* map : maps) top = std::max(top, levels(map));
    std::set<const Json*> absent, pooled;
    for (int64_t level = top; level >= 0; --level)
      for (const Json* map : maps) {
        if (level > levels(map) || absent.contains(map) || pooled.contains(map)) continue;
        if (!add_level(answer["session"], *map, level)) (level == levels(map) ? absent : pooled).insert(map);
      }
    if (!pooled.empty())
      left_out_.push_back(tr("the single weights of {count} maps: they are there as an overview, by the maximum",
                             "count"_a = pooled.size()));
    if (!absent.empty())
      left_out_.push_back(tr("{count} maps, so that the file stays below {bytes} bytes; qkv serve shows them",
                             "count"_a = absent.size(), "bytes"_a = o_.most_bytes));
  }

  // All tiles of a level of a map, or none if they do not fit.
  bool add_level(const Json& session, const Json& map, int64_t level) {
    const auto rows = map["shape"][0].get<int64_t>(), columns = map["shape"][1].get<int64_t>();
    const int64_t size = int64_t{1} << level, span = kTileSide * size;
    const auto cells = [&](int64_t count) { return (count + size - 1) / size; };
    // 4 bytes of a weight in base64, and the request of a tile.
    const int64_t tiles = ((rows + span - 1) / span) * ((columns + span - 1) / span);
    if (bytes_ + cells(rows) * cells(columns) * 16 / 3 + tiles * 400 > o_.most_bytes) return false;
    for (int64_t r = 0; r < rows; r += span)
      for (int64_t c = 0; c < columns; c += span) {
        const int64_t last_row = std::min(rows, r + span), last_column = std::min(columns, c + span);
        const Json body = {{"session", session},
                           {"name", map["name"]},
                           {"layer", map["layer"]},
                           {"head", map["head"]},
                           {"row", {r, last_row}},
                           {"column", {c, last_column}},
                           {"cells", {cells(last_row - r), cells(last_column - c)}},
                           {"form", "base64"}};
        add("/map", body, {}, ask("POST", "/map", body));
      }
    return true;
  }

  std::string address(report::BenchLink& link) const {
    return link.set("lang", o_.language == Language::zh ? "zh" : "en").address();
  }

  Json said() const {
    Json out = Json::array();
    for (const Text& one : left_out_) out.push_back(one.in(o_.language));
    return out;
  }

  // Nothing in the block can end it, and the file may load nothing from anywhere.
  static std::string with_block(const Json& block, const std::string& engine) {
    std::string json;
    for (const char c : json_text(block)) json += c == '<' ? std::string("\\u003c") : std::string(1, c);
    std::string page(page_html()), policy(page_policy());
    for (const std::string_view only_sent : {"; frame-ancestors 'none'", "; connect-src 'self'"})
      if (const size_t at = policy.find(only_sent); at != policy.npos) policy.erase(at, only_sent.size());
    // The engine is compiled by the browser, in a worker whose script is in the file.
    if (!engine.empty()) {
      policy.insert(policy.find("script-src ") + 11, "'wasm-unsafe-eval' blob: ");
      policy += "; worker-src blob:";
    }
    const auto insert = [&](std::string_view before, const std::string& text) {
      const size_t at = page.find(before);
      check(at != page.npos, "[recorded_page] the page has no ", before);
      page.insert(at, text);
    };
    insert("<template id=\"licences\">", engine);
    insert("<template id=\"licences\">",
           "<script type=\"application/json\" id=\"qkv-recorded\">" + json + "</script>\n");
    insert("<title>", "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n");
    return page;
  }

  const RecordOptions& o_;
  ModelShelf shelf_;
  EventHub events_;
  Api api_;
  Json model_;
  Json requests_ = Json::array();
  int64_t bytes_ = 0;
  std::string title_;
  std::vector<Text> left_out_;
};

}  // namespace

RecordedPage recorded_page(const std::string& folder, const RecordOptions& options) {
  return PageRecorder(folder, options).page();
}

}  // namespace qkv::serve
