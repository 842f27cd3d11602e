// Writing figures.
#include "qkv/plot/save.h"

#include <cctype>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"
#include "qkv/plot/png.h"
#include "qkv/plot/svg.h"
#include "qkv/plot/terminal.h"

namespace qkv {
namespace {

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

}  // namespace

void check_figure_path(const std::string& path) {
  const std::string ending = ending_of(path);
  require(ending == ".svg" || ending == ".png" || ending == ".txt",
          "{path}: unknown ending \"{extension}\", expected .svg, .png or .txt", "path"_a = path,
          "extension"_a = std::filesystem::path(path).extension().string());
}

void save(const Figure& figure, const std::string& path, Language language, double png_scale) {
  save(std::span(&figure, 1), path, language, png_scale);
}

void save(std::span<const Figure> figures, const std::string& path, Language language, double png_scale) {
  check_figure_path(path);
  const std::string ending = ending_of(path);
  if (ending == ".txt") {
    std::string page;
    for (const Figure& figure : figures)
      page += (page.empty() ? "" : "\n") +
              terminal(figure, {.columns = 100, .colour = TerminalColour::ascii, .language = language});
    return write_file(path, page);
  }
  const std::string drawn = svg(figures, language);
  write_file(path, ending == ".png" ? plotting::render_png(drawn, png_scale) : drawn);
}

}  // namespace qkv
