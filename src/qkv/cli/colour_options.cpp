// Colour maps by name, and what their ends stand for.
#include "qkv/cli/colour_options.h"

#include <tuple>

#include "qkv/cli/command.h"

namespace qkv::cli {

void ColourOptions::bind(Options& options) {
  options.option("--cmap NAME",
                 {"colour map of heat maps (reds; diverging when numbers have both signs)",
                  "热图的颜色（reds；数值有正有负时为 diverging）"},
                 map_, {"viridis", "reds", "blues", "diverging"});
  options.option("--range LOW,HIGH", {"values at the ends of the colour scale", "颜色两端对应的值"}, range_);
}

ColourScale ColourOptions::over(ColourScale scale) const {
  if (map_) scale.map = colour_map(*map_);
  if (!range_) return scale;
  std::tie(scale.low, scale.high) = two_numbers("--range", *range_, ',');
  if (*scale.low >= *scale.high)
    throw UsageError(text("--range: got \"", *range_, "\", expected the lower number first"));
  return scale;
}

}  // namespace qkv::cli
