// The parts of a whole report that are not labs, as HTML.
#include "qkv/labs/appendix.h"

#include <fmt/format.h>

#include "qkv/labs/exercises.h"
#include "qkv/labs/html_text.h"

namespace qkv::labs {
namespace {

std::string row(const std::vector<std::string>& cells, const char* tag = "td", const std::string& id = "") {
  std::string out = id.empty() ? "<tr>" : "<tr id=\"" + id + "\">";
  for (const std::string& cell : cells) out += fmt::format("<{0}>{1}</{0}>", tag, cell);
  return out + "</tr>\n";
}

std::string table(const std::vector<Text>& head, const std::string& rows) {
  std::vector<std::string> cells;
  for (const Text& text : head) cells.push_back(plain_html(text));
  return "<table class=\"wide\"><thead>" + row(cells, "th") + "</thead><tbody>\n" + rows + "</tbody></table>\n";
}

std::string code(const std::string& text) { return text.empty() ? "" : "<code>" + html_escaped(text) + "</code>"; }

std::string link(const std::string& anchor, const std::string& words) {
  return anchor.empty() ? "" : "<a href=\"#" + anchor + "\">" + words + "</a>";
}

std::string notes_html() {
  std::string out = "<p>" +
                    inline_html(tr("Five notes on this chapter are where the project began. Line by line: what "
                                   "a line says, in our words, which command does it, where this report shows "
                                   "it, what it is called in C++, and where the line is mistaken.")) +
                    "</p>\n" + "<p>" + inline_html(tr("The commands run as they are in a folder made by these:")) +
                    "</p>\n<pre>qkv data attention -o notes\ncd notes\nqkv data nadaraya-watson -o nw.csv\n"
                    "qkv data waist -o waist.csv\nqkv attend --query q.npy --key k.npy --value v.npy --weights w.npy"
                    "</pre>\n";
  int number = 0;
  for (const auto& notes : {notes_in_prose(), notes_of_chapter()})
    for (const Note& note : notes) {
      out += fmt::format("<h3 id=\"note-{0}\">{0}: {1}</h3>\n", note.name, plain_html(note.about));
      std::string rows;
      for (const NoteLine& line : note.lines)
        rows += row({line.lines, inline_html(line.says), code(line.command), link(line.anchor, "→"), code(line.cpp),
                     inline_html(line.erratum)},
                    "td", fmt::format("note-line-{}", ++number));
      out += table({tr("line"), tr("what it says"), tr("command"), tr("here"), verbatim("C++"), tr("erratum")}, rows);
    }
  return out;
}

std::string exercises_html() {
  std::string rows;
  for (const Exercise& exercise : all_exercises()) {
    std::string numbers;
    for (const std::string& number : exercise.numbers)
      numbers += (numbers.empty() ? "" : "<br>") + link(anchor_of_exercise(number), number);
    rows += row(
        {numbers, inline_html(exercise.question), inline_html(exercise.answer), plain_html(kind_name(exercise.kind))});
  }
  return "<p>" +
         inline_html(tr("The exercises of both editions, asked in our words. A number leads to the evidence.")) +
         "</p>\n" + table({tr("number"), tr("question"), tr("answer in one sentence"), tr("kind")}, rows);
}

std::string glossary_html() {
  std::string rows;
  for (const Term& word : glossary())
    rows += row({"<strong>" + plain_html(word.word) + "</strong>", html_escaped(word.others), inline_html(word.meaning),
                 link(word.anchor, "→"), code(word.cpp)});
  return table({tr("word"), tr("symbol"), tr("meaning"), tr("here"), verbatim("C++")}, rows);
}

std::string bibliography_html() {
  std::string out = "<ol>\n";
  for (const Reference& r : bibliography())
    out += fmt::format("<li>{} ({}). <em>{}</em>. {}. {}</li>\n", html_escaped(r.authors), r.year,
                       html_escaped(r.title), html_escaped(r.where), link(r.anchor, "→"));
  return out + "</ol>\n";
}

}  // namespace

std::vector<Appendix> appendices() {
  return {{"exercises", tr("All exercises"), exercises_html()},
          {"notes", tr("The five notes, line by line"), notes_html()},
          {"glossary", tr("Glossary"), glossary_html()},
          {"bibliography", tr("Bibliography"), bibliography_html()}};
}

}  // namespace qkv::labs
