// The input of qkv attend: arrays, masks and scorers from files and options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/mask.h"
#include "qkv/core/language.h"

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

/// The scorers of --score.
std::vector<ScorerKind> offered_scorers();

struct ScorerOptions {
  ScorerKind kind = ScorerKind::scaled_dot;
  std::optional<double> scale, bandwidth, temperature;
  std::optional<std::string> params;  // a .safetensors file
};
AnyScorer read_scorer(const ScorerOptions& options);
/// The help of --params: the tensors of each scorer.
Text params_help();

}  // namespace qkv::cli
