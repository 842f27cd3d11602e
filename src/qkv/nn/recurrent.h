// GRU and LSTM as modules: several layers, dropout between them, one direction or both.
#pragma once

#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/few.h"
#include "qkv/nn/module.h"
#include "qkv/ops/recurrent.h"
#include "qkv/tensor/run.h"

namespace QKV_API qkv {

/// The parameters of one layer in one direction, named and ordered as in PyTorch.
struct RecurrentLayer {
  Tensor weight_ih;         // (G H, D), gates r, z, n or i, f, g, o
  Tensor weight_hh;         // (G H, H)
  Tensor bias_ih, bias_hh;  // (G H)

  CellWeights weights() const { return {weight_ih, weight_hh, bias_ih, bias_hh}; }
  void visit(auto&& f) {
    f("weight_ih", weight_ih);
    f("weight_hh", weight_hh);
    f("bias_ih", bias_ih);
    f("bias_hh", bias_hh);
  }
};

struct RecurrentOptions {
  int64_t layers = 1;
  CellKind cell = CellKind::gru;
  float dropout = 0;  // on the outputs of every layer but the last, while training
  bool bidirectional = false;
  enum class Init {
    pytorch,
    xavier
  } init = Init::pytorch;  // pytorch: all U(+-1/sqrt(H)); xavier: only the weights, as stacked matrices
};

/// (B, T, D) -> (B, T, H), or (B, T, 2 H) in both directions, forward half first.
struct Recurrent {
  RecurrentOptions options;
  std::vector<RecurrentLayer> layers;   // forward
  std::vector<RecurrentLayer> reverse;  // empty unless bidirectional

  struct Output {
    Tensor y;  // of the last layer; 0 beyond a row's length
    Few<CellState> state,
        reverse_state;  // of every layer, after a row's last step (its first for the reverse direction)
  };

  Recurrent() = default;
  Recurrent(int64_t inputs, int64_t units, const RecurrentOptions& options, const Rng& rng);
  /// lens (B): a row's state stops at its length; absent: steps run to the end, including padding, as in the book.
  /// `first`: the state of every layer before its first step, forward and reverse, or none.
  Output operator()(const Tensor& x, const Run& run, const Ids& lens = {}, const Few<CellState>& first = {},
                    const Few<CellState>& reverse_first = {}) const;
  int64_t units() const { return layers.at(0).weight_hh.size(1); }
  int64_t outputs() const { return units() * (reverse.empty() ? 1 : 2); }
  void visit(auto&& f) {
    f("layers", layers);
    f("reverse", reverse);
  }
};

}  // namespace qkv
