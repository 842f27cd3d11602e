// Figures as files.
#pragma once

#include <span>
#include <string>

#include "qkv/core/api.h"
#include "qkv/plot/figure.h"

namespace QKV_API qkv {

/// Fails unless the path ends in .svg, .png or .txt: call it before long work that produces the figure.
void check_figure_path(const std::string& path);

/// Writes the figure in the format of the path's ending: .svg, .png (png_scale pixels per SVG unit) or .txt (the
/// terminal figure in ASCII). The file appears complete or not at all.
void save(const Figure& figure, const std::string& path, Language language = Language::en, double png_scale = 2);
/// Several figures in one file, one below the other. Each needs its own id.
void save(std::span<const Figure> figures, const std::string& path, Language language = Language::en,
          double png_scale = 2);

}  // namespace qkv
