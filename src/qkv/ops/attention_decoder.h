// A recurrent decoder that attends at every step (Bahdanau et al., 2015), teacher-forced, as one tape node.
#pragma once

#include "qkv/core/few.h"
#include "qkv/ops/recurrent.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// What the decoder reads. B rows, S source positions, T steps, A score width, Dv value width, H units.
struct AttentionDecoder {
  CellKind kind = CellKind::gru;
  Tensor keys;      // (B, S, A), projected
  Tensor values;    // (B, S, Dv)
  Ids source_lens;  // (B) or absent: how many source positions a row sees
  // query = W_q state, or the state itself without W_q: (A, H). score = w_v . tanh(query + key) with w_v (A), and
  // scale * query . key without it.
  Tensor W_q, w_v;
  float scale = 1;
  Tensor inputs;            // (B, T, E)
  Ids target_lens;          // (B) or absent: later steps are not computed, their outputs are 0
  Few<CellWeights> layers;  // the first reads concat(context, input), the others the states of the layer below
  Few<CellState> first;     // of every layer
  Tensor weight_factors;    // (B, T, S) or absent: dropout of the weights
  Few<Tensor> factors;      // (B, T, H) each, or none: dropout of the outputs of every layer but the last
};

struct AttentionDecoderResult {
  Tensor y;        // (B, T, H): the states of the last layer
  Tensor weights;  // (B, T, S), before dropout; 0 for steps that are not computed. Not recorded
};

/// For t = 0, 1, ...: query from the state of the last layer before the step, context = attention, one step of every
/// layer. Gradients go to all tensors but the factors. Equivalent to a loop of `linear`, `attend`, `concat` and
/// `recurrent_step`.
AttentionDecoderResult attention_decoder(const AttentionDecoder& d);

}  // namespace qkv
