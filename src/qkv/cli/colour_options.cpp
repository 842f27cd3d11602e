// Colour maps by name, and the values at their ends.
#include "qkv/cli/colour_options.h"

#include <tuple>

#include "qkv/cli/command.h"

namespace qkv::cli {

void ColourOptions::bind(Options& options) {
  options.option("--cmap NAME", tr("colour map of heat maps (default: reds, or diverging if numbers have both signs)"),
                 map_, {"viridis", "reds", "blues", "diverging"});
  options.option("--range LOW,HIGH", tr("values at the ends of the colour scale"), range_);
}

ColourScale ColourOptions::over(ColourScale scale) const {
  if (map_) scale.map = colour_map(*map_);
  if (!range_) return scale;
  std::tie(scale.low, scale.high) = two_numbers("--range", *range_, ',');
  if (*scale.low >= *scale.high)
    throw UsageError(tr("--range: got \"{range}\", expected the lower number first", "range"_a = *range_));
  return scale;
}

}  // namespace qkv::cli
