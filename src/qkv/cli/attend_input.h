// What qkv attend reads: arrays, masks and scorers from files and options.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "qkv/attention/mask.h"
#include "qkv/attention/scorers.h"

namespace qkv::cli {

/// An array from a .npy, or a .csv as (rows, columns).
Tensor read_tensor(const std::string& path);

struct MaskOptions {
  std::optional<std::string> valid_lens;  // "2,6", or a file of (B) or (B, Lq)
  std::optional<std::string> window;      // "L,R"
  std::optional<std::string> keep, bias;  // files
  bool causal = false;
};
Mask read_mask(const MaskOptions& options);

using AnyScorer = std::variant<Constant, Salience, Gaussian, Boxcar, Triangular, Epanechnikov, NegativeSquaredDistance, Dot, ScaledDot,
                               Bilinear, Cosine, VectorSum, Additive>;

/// The names of --score, in the order of AnyScorer.
const std::vector<std::string>& scorer_names();

struct ScorerOptions {
  std::string name = "scaled-dot";
  std::optional<double> scale, bandwidth, temperature;
  std::optional<std::string> params;  // a .safetensors file
};
AnyScorer read_scorer(const ScorerOptions& options);

/// The formula of a score, and whether it needs queries and keys of one width.
struct ScorerFacts {
  std::string formula;
  bool equal_widths;
};
ScorerFacts scorer_facts(const std::string& name);

}  // namespace qkv::cli
