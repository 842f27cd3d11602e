// The report: one self-contained page.
#include <fmt/format.h>

#include "qkv/core/counts.h"
#include "qkv/core/version.h"
#include "qkv/labs/appendix.h"
#include "qkv/labs/html_blocks.h"
#include "qkv/labs/html_text.h"
#include "qkv/labs/render.h"

namespace qkv::labs {
namespace {

std::string buttons() {
  return "<div class=\"buttons\"><button data-language=\"en\">English</button><button data-language=\"zh\">" +
         std::string("中文") + "</button><button id=\"theme\">" + plain_html(tr("light or dark")) +
         "</button><button id=\"fold\">" + plain_html(tr("fold answers")) + "</button></div>\n";
}

std::string facts_html(const TourFacts& facts) {
  if (facts.machine.empty()) return "";
  return "<p class=\"soft\">" +
         inline_html(tr("{machine}, seed {seed}; made by `{command}`", "machine"_a = facts.machine,
                        "seed"_a = facts.seed, "command"_a = facts.command)) +
         "</p>\n" +
         (facts.quick ? "<p class=\"failed\">" +
                            plain_html(tr("A quick tour: what trains for long is left out, and said so where it is "
                                          "missing.")) +
                            "</p>\n"
                      : "");
}

}  // namespace

std::string html_report(const std::vector<Finished>& labs, Language language, const TourFacts& facts) {
  int64_t claims = 0, failed = 0;
  double seconds = 0;
  std::string body, list;
  for (const Finished& finished : labs) {
    claims += finished.page.claims();
    failed += finished.page.failed_claims() + !finished.error.empty();
    seconds += finished.seconds;
    list += contents_html(finished);
    body += lab_html(finished, facts);
  }
  const auto count = static_cast<int64_t>(labs.size());
  const Text summary =
      count == 1 ? tr("1 lab, {claims} checked, {failed} failed, {seconds:.1f} seconds",
                      "claims"_a = claim_count(claims), "failed"_a = failed, "seconds"_a = seconds)
                 : tr("{labs} labs, {claims} checked, {failed} failed, {seconds:.1f} seconds", "labs"_a = count,
                      "claims"_a = claim_count(claims), "failed"_a = failed, "seconds"_a = seconds);
  if (facts.whole)
    for (const Appendix& part : appendices()) {
      list += fmt::format("<a class=\"alone\" href=\"#{}\">{}</a>\n", part.id, plain_html(part.title));
      body += fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", part.id, plain_html(part.title), part.html);
    }
  const bool zh = language == Language::zh;
  const Text title = tr("qkv: a tour of attention");
  return fmt::format(
      "<!doctype html>\n<html lang=\"{}\" data-lang=\"{}\" data-title-en=\"{}\" data-title-zh=\"{}\"><head><meta "
      "charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title>"
      "<link rel=\"icon\" href=\"data:,\"><style>{}</style></head><body>\n<div class=\"layout\">\n<nav>{}{}</nav>\n"
      "<main>\n<header><h1>{}</h1><p class=\"soft\">qkv {} · {}</p>{}</header>\n{}</main></div>\n"
      "<script>{}</script></body></html>\n",
      zh ? "zh-CN" : "en", zh ? "zh" : "en", html_escaped(title.in(Language::en)), html_escaped(title.in(Language::zh)),
      html_escaped(title.in(language)), kReportStyle, buttons(), list, plain_html(tr("A tour of attention")), version(),
      inline_html(summary), facts_html(facts), body, kReportScript);
}

}  // namespace qkv::labs
