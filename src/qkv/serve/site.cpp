// Start page, explorer, tour, manifest and service worker.
#include "qkv/serve/site.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "qkv/core/check.h"
#include "qkv/core/version.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"
#include "qkv/io/sha1.h"
#include "qkv/serve/page_file.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIcon =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\"><rect width=\"64\" height=\"64\" rx=\"12\" "
    "fill=\"#23395b\"/><text x=\"32\" y=\"42\" font-family=\"Georgia,serif\" font-size=\"30\" fill=\"#fff\" "
    "text-anchor=\"middle\">q<tspan font-style=\"italic\">k</tspan>v</text></svg>\n";

constexpr const char* kHead =
    "<link rel=\"manifest\" href=\"manifest.webmanifest\"><link rel=\"icon\" href=\"icon.svg\"><link rel=\"start\" "
    "href=\"index.html\">\n";
// A page that was opened from a disk has no service worker, and needs none.
constexpr const char* kRegister =
    "<script>if(location.protocol.startsWith('http')&&navigator.serviceWorker)"
    "navigator.serviceWorker.register('sw.js')</script>\n";

constexpr const char* kStyle =
    ":root{color-scheme:light dark}body{font:17px/1.6 system-ui,'Noto Sans','Noto Sans CJK SC',sans-serif;margin:0 "
    "auto;max-width:44rem;padding:3rem 1.2rem}h1{font:600 2rem Georgia,serif}a.big{display:block;padding:1rem "
    "1.2rem;margin:.8rem 0;border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:10px;"
    "text-decoration:none;color:inherit}a.big:hover,a.big:focus-visible{border-color:#2f6fb3}a.big b{color:#2f6fb3}"
    "ul{padding-left:1.2rem}.soft{opacity:.7}html:not([lang=zh-CN]) .zh,html[lang=zh-CN] .en{display:none}"
    "button{font:inherit;float:right}";

std::string start_page(bool has_tour) {
  const std::pair<const char*, Text> benches[] = {{"cues", tr("cues on a desk")},
                                                  {"regression", tr("kernel regression as attention")},
                                                  {"scores", tr("scores and masks, number by number")},
                                                  {"translate", tr("what a translation looked at")},
                                                  {"heads", tr("heads, switched off one by one")},
                                                  {"positions", tr("positions")},
                                                  {"transformer", tr("through a whole Transformer")},
                                                  {"language", tr("a model that writes letter by letter")},
                                                  {"vision", tr("draw a picture and see what is seen")},
                                                  {"training", tr("train the book's models in this browser")}};
  std::string out =
      std::string(
          "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\"><title>qkv</title>\n") +
      kHead + "<style>" + kStyle +
      "</style></head><body>\n<button type=\"button\" id=\"language\">English / &#20013;&#25991;</button>\n"
      "<h1>q<i>k</i>v"
      "</h1>\n<p>" +
      both(tr("Attention, alive: every number on these pages is computed in your browser by the same "
              "engine as on the command line. Nothing is sent anywhere.")) +
      "</p>\n<a class=\"big\" href=\"explore.html\"><b>" + both(tr("The explorer")) + "</b><br>" +
      both(tr("touch it: benches for the whole chapter")) + "</a>\n";
  if (has_tour)
    out += "<a class=\"big\" href=\"tour.html\"><b>" + both(tr("The tour")) + "</b><br>" +
           both(tr("read it: every experiment of the chapter, with what was checked")) + "</a>\n";
  out += "<ul>\n";
  for (const auto& [name, title] : benches)
    out += std::string("<li><a href=\"explore.html#") + name + "\">" + both(title) + "</a></li>\n";
  return out + "</ul>\n<p class=\"soft\">qkv " + version() +
         "</p>\n<script>const root=document.documentElement,zh=()=>root.lang==='zh-CN';"
         "const set=to=>{root.lang=to?'zh-CN':'en';document.querySelectorAll('a[href^=explore]').forEach(a=>{"
         "a.href=a.getAttribute('href').replace(/(\\?lang=..)?$/,a.hash?'?lang='+(to?'zh':'en'):'')})};"
         "set(navigator.language.startsWith('zh'));document.getElementById('language').onclick=()=>set(!zh());"
         "</script>\n" +
         kRegister + "</body></html>\n";
}

std::string with_site(std::string page) {
  const auto insert = [&](std::string_view before, const char* what) {
    const size_t at = page.rfind(before);
    check(at != page.npos, "[site] a page has no ", before);
    page.insert(at, what);
  };
  insert("</body>", kRegister);
  page.insert(page.find("<title>"), kHead);
  return page;
}

std::string read_report(const std::string& path) {
  const InputFile file(path);
  std::string out(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  const auto has = [&](const char* part) { return out.find(part) != out.npos; };
  require(has("</body>") && has("<title>") && has("<header>"), "{path}: is not the report of a tour", "path"_a = path);
  return out;
}

constexpr const char* kModels = "/models/";

bool holds_model(const std::vector<EngineFile>& files) {
  return std::ranges::any_of(files, [](const EngineFile& f) { return f.path.starts_with(kModels); });
}

// Everything is kept at the first visit, and answered from there; a new version replaces it as a whole.
std::string service_worker(const std::vector<std::string>& names, const std::string& mark) {
  return "const cache = 'qkv-" + mark + "', files = " + Json(names).dump() +
         ";\n"
         "addEventListener('install', e => e.waitUntil(caches.open(cache).then(c => c.addAll(files)).then(() "
         "=> skipWaiting())));\n"
         "addEventListener('activate', e => e.waitUntil(caches.keys().then(all => Promise.all(all.filter(k => "
         "k.startsWith('qkv-') && k !== cache).map(k => caches.delete(k)))).then(() => clients.claim())));\n"
         "addEventListener('fetch', e => e.respondWith(caches.match(e.request.url.endsWith('/') ? 'index.html' : "
         "e.request, { ignoreSearch: true }).then(r => r ?? fetch(e.request))));\n";
}

}  // namespace

bool has_models(const std::string& report) {
  std::string page = read_report(report);
  return holds_model(take_engine_out(page));
}

std::vector<std::string> write_site(const SiteOptions& options) {
  std::vector<EngineFile> files = options.files;
  std::string report;
  if (!options.report.empty()) {
    report = read_report(options.report);
    std::vector<EngineFile> inside = take_engine_out(report);
    if (holds_model(files)) std::erase_if(inside, [](const EngineFile& f) { return f.path.starts_with(kModels); });
    files.insert(files.end(), inside.begin(), inside.end());
  }
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("index.html", start_page(!options.report.empty()));
  out.emplace_back("explore.html", with_site(explorer_file(files)));
  if (!options.report.empty()) {
    const std::string begin = "<header>", back = "<p><a href=\"index.html\">" + both(tr("Start page")) + "</a></p>";
    report.insert(report.find(begin) + begin.size(), back);
    out.emplace_back("tour.html", with_site(report));
  }
  out.emplace_back("icon.svg", kIcon);
  out.emplace_back(
      "manifest.webmanifest",
      Json{{"name", "qkv explorer"},
           {"short_name", "qkv"},
           {"start_url", "index.html"},
           {"display", "standalone"},
           {"background_color", "#ffffff"},
           {"theme_color", "#23395b"},
           {"icons", Json::array({Json{{"src", "icon.svg"}, {"sizes", "any"}, {"type", "image/svg+xml"}}})}}
              .dump(1) +
          "\n");
  std::vector<std::string> names;
  std::string all;
  for (const auto& [name, content] : out) {
    names.push_back(name);
    all += content;
  }
  out.emplace_back("sw.js", service_worker(names, sha1(std::as_bytes(std::span(all))).substr(0, 12)));
  names.emplace_back("sw.js");
  make_folder(options.folder);
  for (const auto& [name, content] : out) write_file(options.folder + "/" + name, content);
  return names;
}

}  // namespace qkv::serve
