// Writing figures: the whole file beside its place first, then a rename.
#include "qkv/plot/save.h"

#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "qkv/core/check.h"
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

void write_whole(const std::string& path, const std::string& bytes) {
  const std::string beside = path + ".tmp-" + std::to_string(getpid());
  const auto give_up = [&] {
    const int code = errno;
    std::remove(beside.c_str());
    fail(path, ": cannot write: ", std::strerror(code));
  };
  errno = 0;
  std::ofstream file(beside, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file || std::rename(beside.c_str(), path.c_str()) != 0) give_up();
}

}  // namespace

void check_figure_path(const std::string& path) {
  const std::string ending = ending_of(path);
  check(ending == ".svg" || ending == ".png" || ending == ".txt", path, ": unknown ending \"",
        std::filesystem::path(path).extension().string(), "\", expected .svg, .png or .txt");
}

void save(const Figure& figure, const std::string& path, double png_scale) { save(std::span(&figure, 1), path, png_scale); }

void save(std::span<const Figure> figures, const std::string& path, double png_scale) {
  check_figure_path(path);
  const std::string ending = ending_of(path);
  if (ending == ".txt") {
    std::string page;
    for (const Figure& figure : figures)
      page += (page.empty() ? "" : "\n") + terminal(figure, {.columns = 100, .colour = TerminalColour::ascii});
    return write_whole(path, page);
  }
  const std::string drawn = svg(figures);
  write_whole(path, ending == ".png" ? plotting::render_png(drawn, png_scale) : drawn);
}

}  // namespace qkv
