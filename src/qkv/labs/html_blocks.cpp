// The blocks of a lab's page as HTML.
#include "qkv/labs/html_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "qkv/core/counts.h"
#include "qkv/labs/formula.h"
#include "qkv/labs/html_text.h"
#include "qkv/labs/typeset.h"
#include "qkv/plot/layout.h"
#include "qkv/plot/svg.h"

namespace qkv::labs {
namespace {

// Consecutive equations are aligned.
std::string formulas_html(const std::vector<Block>& blocks, size_t& i) {
  std::vector<std::string> all;
  for (; i < blocks.size() && std::holds_alternative<Formula>(blocks[i]); ++i)
    all.push_back(std::get<Formula>(blocks[i]).tex);
  return "<div class=\"formula\">" + (all.size() == 1 ? mathml(all[0], true) : aligned_mathml(all)) + "</div>\n";
}

// A link to the bench, for a server that runs on its usual port.
std::string explore_html(const std::string& address) {
  if (address.empty()) return "";
  const std::string shown = address.size() <= kLongestLink ? address : address.substr(0, address.find('?'));
  const std::string link =
      fmt::format("<a href=\"http://127.0.0.1:7800/{}\">{}</a>", html_escaped(address), html_escaped(shown));
  return "<br><span class=\"explore\">" + in_both_languages([&](Language language) {
           return tr("explore: {command}, {link}", "command"_a = "<code>qkv serve</code>", "link"_a = link)
               .in(language);
         }) +
         "</span>";
}

// An element that is one line of a drawing, by its name: `<text x="4" y="9">loss</text>` or `<rect .../>`.
std::string_view element_of(std::string_view line) {
  constexpr std::string_view names[] = {"<text ", "<rect ", "<line ", "<path ", "<circle "};
  const auto begins = [&](std::string_view name) { return line.starts_with(name); };
  const auto found = std::ranges::find_if(names, begins);
  const bool whole = line.ends_with("/>") || line.ends_with("</text>");
  return found == std::end(names) || !whole || line.find(" class=") != line.npos ? std::string_view() : *found;
}

// Two drawings that differ only in single elements, such as words and the frame of a legend, as one that has those
// elements in both languages. Empty if they differ in more.
std::string one_drawing(const std::string& en, const std::string& zh) {
  std::istringstream english(en), chinese(zh);
  std::string out, left, right;
  while (std::getline(english, left)) {
    if (!std::getline(chinese, right)) return "";
    if (left == right) {
      out += left + "\n";
      continue;
    }
    const std::string_view name = element_of(left);
    if (name.empty() || element_of(right) != name) return "";
    for (const auto& [line, language] : {std::pair{&left, "en"}, std::pair{&right, "zh"}})
      out += fmt::format("{}class=\"{}\" {}\n", name, language, line->substr(name.size()));
  }
  return std::getline(chinese, right) ? "" : out;
}

// On a narrow page a figure is scaled down until its text would be too small; below that it scrolls.
std::string figure_html(const Picture& picture, const std::string& lab) {
  const auto drawing = [&](Language language, const std::string& suffix) {
    Figure figure = translated(picture.figure, language);
    figure.id = lab + "-" + picture.name + "-svg" + suffix;
    return std::pair{svg(figure),
                     std::ceil(plotting::layout(figure).width * plotting::kLeastFont / plotting::kCellFont)};
  };
  const auto framed = [](const std::string& drawn, double least) {
    return fmt::format("<div style=\"--least: {:.0f}px\">{}</div>", least, drawn);
  };
  const auto [english, least] = drawing(Language::en, "");
  const std::string both = one_drawing(english, drawing(Language::zh, "").first);
  std::string drawn = framed(both, least);
  if (both.empty()) {  // two figures on one page need different ids
    drawn = "<div>" +
            in_both_languages(
                [&](Language language) {
                  const auto [one, width] = drawing(language, language == Language::zh ? "-zh" : "");
                  return framed(one, width);
                },
                "div") +
            "</div>";
  }
  return fmt::format("<figure id=\"figure-{}-{}\">{}<figcaption>{}{}</figcaption></figure>\n", lab, picture.name, drawn,
                     inline_html(picture.caption), explore_html(picture.explore));
}

std::string sketch_html(const Sketch& sketch) {
  const std::string drawn = in_both_languages(
      [&](Language language) {
        Diagram diagram = sketch.diagram;
        diagram.id = sketch.name + (language == Language::en ? "-en" : "-zh");
        const double least = diagram.width * plotting::kLeastFont / plotting::kFont;
        return fmt::format("<div style=\"--least: {:.0f}px\">{}</div>", std::ceil(least), svg(diagram, language));
      },
      "div");
  return fmt::format("<figure id=\"{}\"><div>{}</div><figcaption>{}</figcaption></figure>\n", sketch.name, drawn,
                     inline_html(sketch.caption));
}

std::string claim_html(const Claim& claim) {
  return fmt::format("<div class=\"claim{}\"><b>{}</b> {} <span class=\"soft\">[{}]</span></div>\n",
                     claim.holds ? "" : " bad", claim.holds ? "✓" : "✗", inline_html(claim.text),
                     in_both_languages([&](Language l) { return html_escaped(typeset(claim.measured, l)); }));
}

std::string fact_html(const Fact& fact) {
  return "<div class=\"fact\">" + inline_html(fact.text) +
         (fact.measured.empty() ? "" : " [" + in_both_languages([&](Language l) {
                                         return html_escaped(typeset(fact.measured, l));
                                       }) + "]") +
         "</div>\n";
}

std::string block_html(const Block& block, const std::string& lab) {
  if (auto* b = std::get_if<Paragraph>(&block)) return "<p>" + inline_html(b->text) + "</p>\n";
  if (auto* b = std::get_if<Output>(&block)) return "<pre>" + plain_html(b->text) + "</pre>\n";
  if (auto* b = std::get_if<Table>(&block)) return table_html(*b);
  if (auto* b = std::get_if<Picture>(&block)) return figure_html(*b, lab);
  if (auto* b = std::get_if<Sketch>(&block)) return sketch_html(*b);
  if (auto* b = std::get_if<Fact>(&block)) return fact_html(*b);
  if (auto* b = std::get_if<Question>(&block)) return "<p class=\"question\">" + inline_html(b->text) + "</p>\n";
  if (auto* b = std::get_if<Answer>(&block))
    return "<details class=\"answer\" open><summary>" + plain_html(tr("answer and evidence")) +
           "</summary>\n<p class=\"short\">" + inline_html(b->text) + "</p>\n";
  return claim_html(std::get<Claim>(block));
}

// The time from each heading to the next one, or to the end of the page.
std::vector<double> step_seconds(const Page& page) {
  std::vector<double> starts, out;
  for (size_t i = 0; i < page.blocks().size(); ++i)
    if (std::holds_alternative<Heading>(page.blocks()[i])) starts.push_back(page.times()[i]);
  starts.push_back(page.times().empty() ? 0 : page.times().back());
  for (size_t i = 0; i + 1 < starts.size(); ++i) out.push_back(starts[i + 1] - starts[i]);
  return out;
}

std::string heading_html(const Heading& heading, const std::string& anchor, double seconds) {
  std::string more;
  if (heading.exercise)
    for (size_t i = 1; i < heading.exercise->numbers.size(); ++i)
      more += fmt::format("<a id=\"{}\"></a>", anchor_of_exercise(heading.exercise->numbers[i]));
  const std::string time = seconds < 0.05 ? "" : fmt::format("<span class=\"time\">{:.1f} s</span>", seconds);
  return fmt::format("<h3 id=\"{}\">{}{}{}</h3>\n", anchor, more, inline_html(heading.text), time);
}

}  // namespace

std::string table_html(const Table& table, const std::string& css_class) {
  const auto cell = [&](const std::string& tag, size_t column, const Text& text) {
    return "<" + tag + (is_number_column(table, column, Language::en) ? " class=\"number\">" : ">") +
           inline_html(text) + "</" + tag + ">";
  };
  std::string out = css_class.empty() ? "<table><thead><tr>" : "<table class=\"" + css_class + "\"><thead><tr>";
  for (size_t c = 0; c < table.head.size(); ++c) out += cell("th", c, table.head[c]);
  out += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) out += cell("td", c, row[c]);
    out += "</tr>";
  }
  return out + "</tbody></table>\n";
}

std::string lab_html(const Finished& finished, const TourFacts& facts) {
  const auto& [lab, page, seconds, error] = finished;
  std::string out = fmt::format("<section id=\"{}\"><h2>{} {}</h2>\n", lab->name, lab->section, plain_html(lab->title));
  out += "<p class=\"soft\">" +
         inline_html(tr("`{command}` · {claims}, {failed} failed · {seconds:.1f} seconds",
                        "command"_a = fmt::format("qkv lab {} --seed {}", lab->name, facts.seed),
                        "claims"_a = claim_count(page.claims()), "failed"_a = page.failed_claims(),
                        "seconds"_a = seconds)) +
         "</p>\n";
  const std::vector<Block>& blocks = page.blocks();
  const std::vector<std::string> ids = anchors(*lab, page);
  const std::vector<double> times = step_seconds(page);
  size_t step = 0;
  bool folded = false;
  for (size_t i = 0; i < blocks.size();) {
    if (auto* heading = std::get_if<Heading>(&blocks[i])) {
      if (folded) out += "</details>\n";
      folded = false;
      out += heading_html(*heading, ids[step], times[step]);
      ++step;
      ++i;
    } else if (std::holds_alternative<Formula>(blocks[i])) {
      out += formulas_html(blocks, i);
    } else {
      folded = folded || std::holds_alternative<Answer>(blocks[i]);
      out += block_html(blocks[i++], lab->name);
    }
  }
  if (folded) out += "</details>\n";
  if (!error.empty())
    out += "<p class=\"failed\">" + plain_html(tr("This lab failed and ended here: {error}", "error"_a = error)) +
           "</p>\n";
  return out + "</section>\n";
}

std::string contents_html(const Finished& finished) {
  const Lab& lab = *finished.lab;
  const bool failed = !finished.error.empty() || finished.page.failed_claims() > 0;
  std::string out = fmt::format("<details data-lab=\"{0}\"><summary><a href=\"#{0}\">{1} {2}{3}</a></summary><ul>",
                                lab.name, lab.section, plain_html(lab.title), failed ? " ✗" : "");
  const std::vector<std::string> ids = anchors(lab, finished.page);
  size_t step = 0;
  for (const Block& block : finished.page.blocks())
    if (auto* heading = std::get_if<Heading>(&block))
      out += fmt::format("<li><a href=\"#{}\">{}</a></li>", ids[step++], inline_html(heading->text));
  return out + "</ul></details>\n";
}

}  // namespace qkv::labs
