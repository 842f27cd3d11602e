// A figure as SVG text.
#pragma once

#include <span>
#include <string>

#include "qkv/core/api.h"
#include "qkv/plot/figure.h"

namespace QKV_API qkv {

/// The figure as one <svg> element, fit for a file and for inline use in HTML. The same figure gives the same bytes. If
/// the heat maps have more than 800 cells in total, they are embedded as images, averaged down to at most 1,024 cells
/// per side.
std::string svg(const Figure& figure, Language language = Language::en);

/// Several figures, one below the other, as one <svg> element. Each needs its own id.
std::string svg(std::span<const Figure> figures, Language language = Language::en);

}  // namespace qkv
