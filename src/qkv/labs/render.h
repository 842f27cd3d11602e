// A lab's page for a terminal, as Markdown, as HTML; and the report of several labs.
#pragma once

#include <string>
#include <vector>

#include "qkv/labs/lab.h"

namespace qkv::labs {

struct Finished {
  const Lab* lab;
  Page page;
  double seconds;
};

/// One block as a terminal shows it; figures are named, not drawn.
std::string plain(const Block& block, Language language);
/// A note with TeX formulas and links to figures/NAME.svg beside it.
std::string markdown(const Lab& lab, const Page& page, Language language);
/// One self-contained page: style, MathML and SVG inside, no script, no network.
std::string html_report(const std::vector<Finished>& labs, Language language);
/// Writes every figure of a page as NAME.svg and NAME.png into a folder; returns the paths.
std::vector<std::string> save_figures(const Page& page, const std::string& folder);

}  // namespace qkv::labs
