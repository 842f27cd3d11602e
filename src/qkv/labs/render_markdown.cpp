// A page as a Markdown note.
#include "qkv/labs/markup.h"
#include "qkv/labs/render.h"
#include "qkv/labs/typeset.h"
#include "qkv/plot/save.h"

namespace qkv::labs {
namespace {

std::string table_markdown(const Table& table, Language language) {
  std::string out = "|", line = "|";
  for (size_t c = 0; c < table.head.size(); ++c) {
    out += " " + typeset(table.head[c], language) + " |";
    line += is_number_column(table, c, language) ? "---:|" : "---|";
  }
  out += "\n" + line + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const Text& cell : row) out += " " + typeset(cell, language) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace

std::string markdown(const Lab& lab, const Page& page, Language language) {
  std::string out = "# " + lab.section + " " + lab.title.in(language) + "\n";
  for (const Block& block : page.blocks()) {
    out += "\n";
    if (auto* b = std::get_if<Heading>(&block))
      out += "## " + typeset(b->text, language) + "\n";
    else if (auto* b = std::get_if<Paragraph>(&block))
      out += typeset(b->text, language) + "\n";
    else if (auto* b = std::get_if<Question>(&block))
      out += "**" + tr("Question:").in(language) + "** " + typeset(b->text, language) + "\n";
    else if (auto* b = std::get_if<Answer>(&block))
      out += "**" + tr("In one sentence:").in(language) + "** " + typeset(b->text, language) + "\n";
    else if (auto* b = std::get_if<Sketch>(&block)) {
      const std::string caption = typeset(b->caption, language);
      out += "![" + caption + "](" + b->name + ".svg)\n\n*" + caption + "*\n";
    } else if (auto* b = std::get_if<Formula>(&block))
      out += "$$" + b->tex + "$$\n";
    else if (auto* b = std::get_if<Output>(&block)) {
      const std::string text = b->text.in(language);
      out += "```text\n" + text + (text.ends_with('\n') ? "" : "\n") + "```\n";
    } else if (auto* b = std::get_if<Picture>(&block)) {
      const std::string caption = typeset(b->caption, language);
      out += "![" + caption + "](" + b->name + ".svg)\n\n*" + caption + "*\n";
      if (!b->explore.empty())
        out += "\n" +
               tr("explore: {command}, {link}", "command"_a = "`qkv serve`",
                  "link"_a =
                      "[" + b->explore.substr(0, b->explore.find('?')) + "](http://127.0.0.1:7800/" + b->explore + ")")
                   .in(language) +
               "\n";
    } else if (auto* b = std::get_if<Table>(&block))
      out += table_markdown(*b, language);
    else if (auto* b = std::get_if<Fact>(&block))
      out += "- " + typeset(b->text, language) +
             (b->measured.empty() ? "" : " (" + typeset(b->measured, language) + ")") + "\n";
    else {
      const auto& claim = std::get<Claim>(block);
      out += std::string(claim.holds ? "- ✓ " : "- ✗ ") + typeset(claim.text, language) + " (" +
             typeset(claim.measured, language) + ")\n";
    }
  }
  return out;
}

int64_t save_figure(const Picture& picture, const std::string& folder, Language language) {
  int64_t files = 0;
  for (const char* ending : {".svg", ".png"}) {
    save(picture.figure, folder + "/" + picture.name + ending, language);
    ++files;
  }
  return files;
}

int64_t save_sketch(const Sketch& sketch, const std::string& folder, Language language) {
  save(sketch.diagram, folder + "/" + sketch.name + ".svg", language);
  return 1;
}

}  // namespace qkv::labs
