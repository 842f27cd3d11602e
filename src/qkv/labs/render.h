// A lab's page as terminal text, Markdown or HTML, and the report of several labs.
#pragma once

#include <string>
#include <vector>

#include "qkv/labs/lab.h"

namespace qkv::labs {

struct Finished {
  const Lab* lab;
  Page page;
  double seconds;
  Text error = {};  // if it ended with one
};

/// What a report says of the run it shows.
struct TourFacts {
  Text machine = {};
  std::string command = {};
  uint64_t seed = 0;
  bool quick = false;
  bool whole = false;  // with the notes, the glossary, the list of exercises and the bibliography
};

/// Addresses of benches up to this length are shown in full.
inline constexpr size_t kLongestLink = 60;

/// How a terminal shows blocks.
struct PlainStyle {
  int columns = 96;         // of the terminal; text uses at most 100, tables and output use all
  bool colour = false;      // bold headings, green and red marks, figures in colour
  bool figures = false;     // drawn; otherwise only named
  std::string folder = {};  // figures are saved here, and the file is named beside its figure; empty: nowhere
};
/// One block as a terminal shows it.
std::string plain(const Block& block, Language language, const PlainStyle& style = {});
/// The first line of a lab, "10.2 Attention pooling".
std::string plain_title(const Lab& lab, Language language, const PlainStyle& style = {});
/// A note with TeX formulas and links to figures/NAME.svg beside it.
std::string markdown(const Lab& lab, const Page& page, Language language);
/// One self-contained page in both languages, which opens in `language`: style, script, MathML and SVG are inside, and
/// nothing is loaded.
std::string html_report(const std::vector<Finished>& labs, Language language, const TourFacts& facts = {});
/// Writes a figure as NAME.svg and NAME.png into a folder; returns the number of files.
int64_t save_figure(const Picture& picture, const std::string& folder, Language language);
/// Writes a diagram as NAME.svg; returns 1.
int64_t save_sketch(const Sketch& sketch, const std::string& folder, Language language);

}  // namespace qkv::labs
