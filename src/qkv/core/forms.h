// The choices that kernels and the ops above them share.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/rng.h"

namespace QKV_API qkv {

/// The function applied at the end of a linear layer.
enum class Activation { none, relu, gelu, gelu_tanh, tanh, sigmoid, silu };
constexpr std::array<std::string_view, 7> names(Activation) {
  return {"none", "relu", "gelu", "gelu-tanh", "tanh", "sigmoid", "silu"};
}

/// Whether an operand is used as stored or transposed.
enum class Transpose { no, yes };

inline Transpose operator!(Transpose t) { return t == Transpose::no ? Transpose::yes : Transpose::no; }

/// How a score is computed from a query and a key.
enum class ScoreForm {
  dot,           // scale * q . k
  gaussian,      // -scale^2 / 2 |q - k|^2: computed from differences, exact in low dimension
  boxcar,        // log of the kernel of u = scale |q - k|: 1 where u <= 1
  triangular,    // max(0, 1 - u)
  epanechnikov,  // max(0, 1 - u^2)
};

/// Dropout on the weights, replayed in backward: word (key, counter (step, first_row + b * heads + h, i, j / 4))[j % 4]
/// >= rate * 2^32 keeps the weight, divided by 1 - rate. rate 0: none.
struct AttentionDropout {
  float rate = 0;
  PhiloxKey key{};
  uint32_t step = 0, first_row = 0;
};

/// How a recurrent layer computes its next state h' (h is the previous state, * is elementwise):
///   gru         r, z = sigmoid, n = tanh(W_n x + b + r * (U_n h + b')), h' = (1 - z) n + z h
///               as in PyTorch, with the reset after the product
///   gru_before  the same with n = tanh(W_n x + b + U_n (r * h) + b')
///               as in the book and the original paper (Cho et al., 2014)
///   lstm        i, f, o = sigmoid, g = tanh, c' = f c + i g, h' = o tanh(c') (Hochreiter and Schmidhuber, 1997)
enum class CellKind { gru, gru_before, lstm };
constexpr std::array<std::string_view, 3> names(CellKind) { return {"gru", "gru-before", "lstm"}; }

/// Number of gates of a cell, each as wide as the state; its weights have their rows in PyTorch's order r, z, n or i,
/// f, g, o.
constexpr int64_t cell_gates(CellKind kind) { return kind == CellKind::lstm ? 4 : 3; }

/// Whether a layer reads its sequences from the first element or from the last.
enum class Direction { forward, backward };

/// K(u) with K(0) = 1: exp(-u^2 / 2); for |u| < 1: 1, 1 - u^2 and 1 - |u|; 1 everywhere. In several dimensions, their
/// product.
enum class KernelShape { gaussian, boxcar, epanechnikov, triangular, constant };
constexpr std::array<std::string_view, 5> names(KernelShape) {
  return {"gaussian", "boxcar", "epanechnikov", "triangular", "constant"};
}

}  // namespace qkv
