// The report: one self-contained page.
#include <fmt/format.h>

#include <cmath>

#include "qkv/core/counts.h"
#include "qkv/core/version.h"
#include "qkv/labs/formula.h"
#include "qkv/labs/markup.h"
#include "qkv/labs/render.h"
#include "qkv/labs/typeset.h"
#include "qkv/plot/layout.h"
#include "qkv/plot/svg.h"

namespace qkv::labs {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5b6472; --page: #ffffff; --box: #f4f5f7; --line: #dfe2e7;
  --good: #1a7f4b; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #a0a7b3; --page: #15181d; --box: #1f242c;
  --line: #333a45; --good: #5cc98e; --bad: #ff8a80; } }
body { margin: 0 auto; padding: 2rem 1.25rem 5rem; max-width: 52rem; background: var(--page); color: var(--ink);
  font: 16px/1.6 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif; }
h1 { font-size: 1.9rem; margin: 0 0 .25rem; }
h2 { margin-top: 3.5rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { margin-top: 2.2rem; } .soft { color: var(--soft); } nav ol { padding-left: 1.4rem; } a { color: inherit; }
pre { background: var(--box); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; font-size: .88rem;
  line-height: 1.45; }
code { background: var(--box); padding: .1em .3em; border-radius: 4px; font-size: .92em; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: left;
  font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0; }
figure > div { width: fit-content; max-width: 100%; box-sizing: border-box; margin: 0 auto; background: #fff;
  border: 1px solid var(--line); border-radius: 6px; padding: .5rem; overflow-x: auto; }
figure svg { max-width: 100%; min-width: var(--least); height: auto; display: block; margin: 0 auto; }
figcaption { color: var(--soft); font-size: .92rem; margin: .4rem auto 0; text-align: center; max-width: 44rem;
  text-wrap: balance; }
.explore { font-size: .85rem; }
.number { text-align: right; } td.number { white-space: nowrap; }
.claim { padding: .35rem .8rem; border-left: 3px solid var(--good); background: var(--box); margin: .5rem 0;
  border-radius: 0 6px 6px 0; }
.fact { padding: .2rem .8rem; border-left: 3px solid var(--line); color: var(--soft); margin: .5rem 0; }
.claim.bad { border-color: var(--bad); } .claim b { color: var(--good); } .claim.bad b { color: var(--bad); }
math { font-size: 1.08em; font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", "DejaVu Math TeX Gyre",
  "Noto Sans Math", math; }
)";

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

struct HtmlWriter {
  std::string plain(std::string_view s) { return escape(s); }
  std::string code(std::string_view s) { return "<code>" + escape(s) + "</code>"; }
  std::string strong(std::string_view s) { return "<strong>" + escape(s) + "</strong>"; }
  std::string formula(std::string_view s) { return mathml(s, false); }
};

std::string inline_html(const Text& text, Language language) {
  return marked_up(typeset(text, language), HtmlWriter{});
}

std::string table_html(const Table& table, Language language) {
  const auto cell = [&](const std::string& tag, size_t column, const Text& text) {
    return "<" + tag + (is_number_column(table, column, language) ? " class=\"number\">" : ">") +
           inline_html(text, language) + "</" + tag + ">";
  };
  std::string out = "<table><thead><tr>";
  for (size_t c = 0; c < table.head.size(); ++c) out += cell("th", c, table.head[c]);
  out += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) out += cell("td", c, row[c]);
    out += "</tr>";
  }
  return out + "</tbody></table>\n";
}

// Consecutive equations are aligned.
std::string formulas_html(const std::vector<Block>& blocks, size_t& i) {
  std::vector<std::string> all;
  for (; i < blocks.size() && std::holds_alternative<Formula>(blocks[i]); ++i)
    all.push_back(std::get<Formula>(blocks[i]).tex);
  return (all.size() == 1 ? mathml(all[0], true) : aligned_mathml(all)) + "\n";
}

// A link to the bench, for a server that runs on its usual port.
std::string explore_html(const std::string& address, Language language) {
  if (address.empty()) return "";
  const std::string shown = address.size() <= kLongestLink ? address : address.substr(0, address.find('?'));
  const std::string link = fmt::format("<a href=\"http://127.0.0.1:7800/{}\">{}</a>", escape(address), escape(shown));
  return "<br><span class=\"explore\">" +
         tr("explore: {command}, {link}", "command"_a = "<code>qkv serve</code>", "link"_a = link).in(language) +
         "</span>";
}

// On a narrow page a figure is scaled down until its text would be too small; below that it scrolls.
std::string figure_html(const Picture& picture, const std::string& lab, Language language) {
  Figure figure = translated(picture.figure, language);
  figure.id = lab + "-" + picture.name;
  const double least = plotting::layout(figure).width * plotting::kLeastFont / plotting::kCellFont;
  return fmt::format("<figure><div style=\"--least: {:.0f}px\">{}</div><figcaption>{}{}</figcaption></figure>\n",
                     std::ceil(least), svg(figure), inline_html(picture.caption, language),
                     explore_html(picture.explore, language));
}

std::string block_html(const Block& block, const std::string& lab, Language language) {
  if (auto* b = std::get_if<Heading>(&block)) return "<h3>" + inline_html(b->text, language) + "</h3>\n";
  if (auto* b = std::get_if<Paragraph>(&block)) return "<p>" + inline_html(b->text, language) + "</p>\n";
  if (auto* b = std::get_if<Output>(&block)) return "<pre>" + escape(b->text.in(language)) + "</pre>\n";
  if (auto* b = std::get_if<Table>(&block)) return table_html(*b, language);
  if (auto* b = std::get_if<Picture>(&block)) return figure_html(*b, lab, language);
  if (auto* b = std::get_if<Fact>(&block))
    return "<div class=\"fact\">" + inline_html(b->text, language) +
           (b->measured.empty() ? "" : " [" + escape(typeset(b->measured, language)) + "]") + "</div>\n";
  const auto& claim = std::get<Claim>(block);
  return fmt::format("<div class=\"claim{}\"><b>{}</b> {} <span class=\"soft\">[{}]</span></div>\n",
                     claim.holds ? "" : " bad", claim.holds ? "✓" : "✗", inline_html(claim.text, language),
                     escape(typeset(claim.measured, language)));
}

}  // namespace

std::string html_report(const std::vector<Finished>& labs, Language language) {
  int64_t claims = 0, failed = 0;
  double seconds = 0;
  std::string body, list;
  for (const auto& [lab, page, took] : labs) {
    claims += page.claims();
    failed += page.failed_claims();
    seconds += took;
    const std::string title = lab->section + " " + lab->title.in(language);
    list += fmt::format("<li><a href=\"#{}\">{}</a></li>", lab->name, escape(title));
    body += fmt::format("<section id=\"{}\"><h2>{}</h2>\n", lab->name, escape(title));
    const std::vector<Block>& blocks = page.blocks();
    for (size_t i = 0; i < blocks.size();)
      body += std::holds_alternative<Formula>(blocks[i]) ? formulas_html(blocks, i)
                                                         : block_html(blocks[i++], lab->name, language);
    body += "</section>\n";
  }
  const auto count = static_cast<int64_t>(labs.size());
  const Text summary =
      count == 1 ? tr("1 lab, {claims} checked, {failed} failed, {seconds:.1f} seconds",
                      "claims"_a = claim_count(claims), "failed"_a = failed, "seconds"_a = seconds)
                 : tr("{labs} labs, {claims} checked, {failed} failed, {seconds:.1f} seconds", "labs"_a = count,
                      "claims"_a = claim_count(claims), "failed"_a = failed, "seconds"_a = seconds);
  return fmt::format(
      "<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>qkv: {}</title><style>{}</style></head><body>\n"
      "<header><h1>{}</h1><p class=\"soft\">qkv {} · {}</p></header>\n<nav><ol>{}</ol></nav>\n{}</body></html>\n",
      language == Language::zh ? "zh-CN" : "en", tr("a tour of attention").in(language), kStyle,
      tr("A tour of attention").in(language), version(), summary.in(language), list, body);
}

}  // namespace qkv::labs
