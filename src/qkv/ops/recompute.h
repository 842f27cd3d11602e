// Trades time for memory: part of a computation whose intermediate values are not kept but recomputed in the backward
// pass (Chen et al., 2016).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Whether the function runs for its value, or a second time for its gradients, when probes must not be called.
enum class Pass { first, again };
using Recomputable = std::function<Tensor(std::span<const Tensor> inputs, Pass pass)>;

/// f(inputs). The only tracked tensors f may read are its inputs and the parameters; it must give the same result every
/// time, and whatever it refers to must outlive the tape. Inputs of any shape -> the result of f
Tensor recomputed(std::vector<Tensor> inputs, std::vector<Tensor> parameters, Recomputable f);

}  // namespace qkv
