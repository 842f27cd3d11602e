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
    out += " " + table.head[c].in(language) + " |";
    line += is_number_column(table, c, language) ? "---:|" : "---|";
  }
  out += "\n" + line + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const Text& cell : row) out += " " + cell.in(language) + " |";
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
      out += "## " + b->text.in(language) + "\n";
    else if (auto* b = std::get_if<Paragraph>(&block))
      out += b->text.in(language) + "\n";
    else if (auto* b = std::get_if<Formula>(&block))
      out += "$$" + b->tex + "$$\n";
    else if (auto* b = std::get_if<Output>(&block))
      out += "```text\n" + b->text + (b->text.ends_with('\n') ? "" : "\n") + "```\n";
    else if (auto* b = std::get_if<Picture>(&block))
      out += "![" + b->caption.in(language) + "](" + b->name + ".svg)\n\n*" + b->caption.in(language) + "*\n";
    else if (auto* b = std::get_if<Table>(&block))
      out += table_markdown(*b, language);
    else if (auto* b = std::get_if<Fact>(&block))
      out += "- " + b->text.in(language) + (b->measured.empty() ? "" : " (" + b->measured + ")") + "\n";
    else {
      const auto& claim = std::get<Claim>(block);
      out += std::string(claim.holds ? "- ✓ " : "- ✗ ") + claim.text.in(language) + " (" + claim.measured + ")\n";
    }
  }
  return out;
}

int64_t save_figure(const Picture& picture, const std::string& folder) {
  int64_t files = 0;
  for (const char* ending : {".svg", ".png"}) save(picture.figure, folder + "/" + picture.name + ending), ++files;
  return files;
}

}  // namespace qkv::labs
