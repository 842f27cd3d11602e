// Recurrent layers over whole sequences: one tape node per layer and direction.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/forms.h"
#include "qkv/ops/cell_weights.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// The state of a layer; c for LSTM only. Absent tensors mean 0.
struct CellState {
  Tensor h, c;  // (B, H)
};

struct RecurrentResult {
  Tensor y;         // (B, T, H): the state after every step; 0 beyond a row's length
  CellState state;  // after the last step of every row; a row without steps keeps its first state
};

/// A recurrent layer. x (B, T, D), lens (B); without lens every row has T steps. Direction::backward reads every row
/// from its last element to its first; y stays in the order of x. Gradients go to x, the weights and the first state.
/// Equivalent to a loop of `linear`, sigmoid and tanh.
RecurrentResult recurrent(CellKind kind, const Tensor& x, const CellWeights& weights, const CellState& first = {},
                          const Ids& lens = {}, Direction direction = Direction::forward);

/// One step of the layer, bit-identical to it: x (B, D) -> the next state.
CellState recurrent_step(CellKind kind, const Tensor& x, const CellWeights& weights, const CellState& before);

}  // namespace qkv
