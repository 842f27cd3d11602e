// Packs the engine, the page and models as text inside HTML.
#include "qkv/serve/page_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/io/file.h"
#include "qkv/io/gzip.h"
#include "qkv/run/run_folder.h"
#include "qkv/serve/base64.h"
#include "qkv/serve/page.h"
#include "qkv/tasks/run_config.h"

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string packed(std::string_view bytes) { return base64(gzipped(bytes)); }

std::string whole_file(const std::string& path) {
  const InputFile file(path);
  std::string out(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

bool has_subwords(const RunConfig& config) {
  if (const auto* translation = std::get_if<TranslationConfig>(&config.of)) return translation->data.has_subwords();
  if (const auto* language = std::get_if<LanguageConfig>(&config.of)) return language->data.has_subwords();
  return false;
}

constexpr const char* kBenchStyle =
    ".benches button { margin: 0 .4em .4em 0; } dialog.explorer { width: 96vw; height: 96vh; max-width: none; "
    "max-height: none; padding: 34px 0 0; border: 0; border-radius: 8px; overflow: hidden; background: var(--box); } "
    "dialog.explorer iframe { width: 100%; height: 100%; border: 0; display: block; } dialog.explorer > button { "
    "position: absolute; right: 6px; top: 3px; height: 28px; padding: 0 12px; border-radius: 6px; border: 1px solid "
    "#888; background: var(--page); color: var(--ink); cursor: pointer; } @media print { .benches { display: none; } } "
    "@media (max-width: 700px) { dialog.explorer { width: 100vw; height: 100vh; border-radius: 0; margin: 0; } }";

// The explorer is unpacked when a bench is opened for the first time; the engine inside it when it is asked something.
constexpr const char* kBenchScript = R"js(
{
  const place = document.querySelector("dialog.explorer"), frame = place.querySelector("iframe");
  place.querySelector("button").onclick = () => place.close();
  let page = document.getElementById("qkv-page") ? null : "explore.html";
  const unpack = async () => {
    const packed = JSON.parse(document.getElementById("qkv-page").textContent);
    const bytes = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
    const html = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const mark = '<template id="licences">', engine = document.getElementById("qkv-engine").outerHTML;
    return URL.createObjectURL(new Blob([html.replace(mark, () => engine + mark)], { type: "text/html" }));
  };
  const open = async address => {
    page ??= await unpack();
    const {lang, theme} = document.documentElement.dataset;
    const look = "lang=" + lang + (theme ? "&theme=" + theme : "");
    frame.src = page + address + (address.includes("?") ? "&" : "?") + look;
    place.showModal();
  };
  document.querySelectorAll("[data-bench]").forEach(one => one.onclick = () => open(one.dataset.bench));
  document.querySelectorAll(".explore a").forEach(link => link.onclick = event => {
    event.preventDefault();
    open(new URL(link.href).hash);
  });
}
)js";

// What opens over the report. Its frame is empty until a bench is touched.
std::string bench_place() {
  return "<dialog class=\"explorer\"><button type=\"button\">" + both(tr("Back to the report")) +
         " \u00d7</button><iframe title=\"qkv\"></iframe></dialog>\n";
}

std::string bench_buttons() {
  const std::pair<const char*, Text> all[] = {{"cues", tr("cues")},
                                              {"regression", tr("regression")},
                                              {"scores", tr("scores and masks")},
                                              {"translate", tr("translate")},
                                              {"heads", tr("heads")},
                                              {"positions", tr("positions")},
                                              {"transformer", tr("Transformer")},
                                              {"language", tr("language")},
                                              {"vision", tr("vision")},
                                              {"training", tr("training")}};
  std::string out = "<p class=\"benches\">" + both(tr("Touch it, here on this page:")) + " ";
  for (const auto& [name, title] : all)
    out += std::string("<button type=\"button\" data-bench=\"#") + name + "\">" + both(title) + "</button>";
  return out + "</p>\n";
}

std::string inserted(std::string page, std::string_view before, const std::string& text) {
  const size_t at = page.find(before);
  check(at != page.npos, "[explorer_file] the page has no ", before);
  return page.insert(at, text);
}

// The block with this id, from its first to its last character; empty if there is none.
std::pair<size_t, size_t> block_of(const std::string& page, std::string_view id) {
  const std::string end = "</script>\n";
  const size_t begin = page.find("<script type=\"application/json\" id=\"" + std::string(id) + "\">");
  if (begin == page.npos) return {0, 0};
  const size_t last = page.find(end, begin);
  return last == page.npos ? std::pair<size_t, size_t>{0, 0} : std::pair{begin, last + end.size()};
}

}  // namespace

std::string both(const Text& text) {
  return "<span class=\"en\">" + text.in(Language::en) + "</span><span class=\"zh\" lang=\"zh-CN\">" +
         text.in(Language::zh) + "</span>";
}

EngineFile engine_file(std::string path, std::string_view bytes) { return {std::move(path), packed(bytes)}; }

std::vector<EngineFile> engine_files(const std::string& folder, const std::string& name, int64_t most_bytes) {
  if (!fs::exists(folder + "/config.yaml") || has_subwords(read_folder_config(folder))) return {};
  const std::string weights = run_weights(folder);
  if (fs::file_size(weights) > static_cast<uintmax_t>(most_bytes)) return {};
  std::vector<EngineFile> out = {engine_file("/models/" + name + "/model.safetensors", whole_file(weights))};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string(), type = entry.path().extension().string();
    if (entry.is_regular_file() && (type == ".yaml" || type == ".txt" || type == ".json"))
      out.push_back(engine_file("/models/" + name + "/" + file, whole_file(entry.path().string())));
  }
  return out;
}

std::vector<EngineFile> model_files(const std::string& folder, int64_t most_bytes) {
  auto out =
      engine_files(folder, fs::path(folder + "/").lexically_normal().parent_path().filename().string(), most_bytes);
  require(!out.empty(),
          "{folder}: the engine in a page cannot show this model: it reads models of qkv train with words or "
          "characters, and at most {most} bytes of weights",
          "folder"_a = folder, "most"_a = most_bytes);
  return out;
}

std::string engine_block(const std::vector<EngineFile>& files) {
  const auto found = page_engine();
  if (!found) return "";
  const PageEngine& engine = *found;
  Json out = {{"worker", base64(engine.worker)}, {"wasm", base64(engine.wasm)}, {"catalogue", base64(engine.chinese)}};
  out["files"] = Json::array();
  for (const EngineFile& file : files) out["files"].push_back({{"path", file.path}, {"data", file.packed}});
  std::string json;
  for (const char c : out.dump(-1, ' ', false, Json::error_handler_t::replace))
    json += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return "<script type=\"application/json\" id=\"qkv-engine\">" + json + "</script>\n";
}

std::string explorer_file(const std::vector<EngineFile>& files) {
  return inserted(std::string(page_html()), "<template id=\"licences\">", engine_block(files));
}

std::string with_benches(std::string report, const std::vector<EngineFile>& files) {
  if (!page_engine()) return report;
  report = inserted(std::move(report), "</header>", bench_buttons());
  report = inserted(std::move(report), "</head>", std::string("<style>") + kBenchStyle + "</style>");
  const size_t end = report.rfind("</body>");
  check(end != report.npos, "[with_benches] the report has no </body>");
  return report.insert(end, bench_place() + "<script type=\"application/json\" id=\"qkv-page\">\"" +
                                packed(page_html()) + "\"</script>\n" + engine_block(files) + "<script>" +
                                kBenchScript + "</script>\n");
}

std::vector<EngineFile> take_engine_out(std::string& report) {
  std::vector<EngineFile> out;
  for (const std::string_view id : {"qkv-engine", "qkv-page"}) {
    const auto [begin, end] = block_of(report, id);
    if (begin == end) continue;
    if (id == "qkv-engine") {
      const size_t json = report.find('>', begin) + 1;
      const Json block = Json::parse(report.substr(json, report.find("</script>", json) - json), nullptr, false);
      if (block.contains("files"))
        for (const Json& file : block["files"]) out.push_back({file["path"], file["data"]});
    }
    report.erase(begin, end - begin);
  }
  return out;
}

}  // namespace qkv::serve
