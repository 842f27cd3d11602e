// The options --cmap and --range of the commands that draw heat maps.
#pragma once

#include <optional>
#include <string>

#include "qkv/cli/options.h"
#include "qkv/plot/figure.h"

namespace qkv::cli {

class ColourOptions {
 public:
  void bind(Options& options);
  bool given() const { return map_ || range_; }
  /// A command's own scale, changed by the options given; throws UsageError.
  ColourScale over(ColourScale scale) const;

 private:
  std::optional<std::string> map_, range_;
};

}  // namespace qkv::cli
