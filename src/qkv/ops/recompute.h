// Memory for time: part of a computation whose inner values are not kept, but computed again when backward comes (Chen
// et al., 2016).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Whether the function runs for its value, or a second time for its gradients: then nobody should look on.
enum class Pass { first, again };
using Recomputable = std::function<Tensor(std::span<const Tensor> inputs, Pass pass)>;

/// f(inputs). f reads nothing tracked but its inputs and the parameters, gives the same result every time, and what it
/// refers to outlives the tape. Inputs of any shapes -> what f makes of them
Tensor recomputed(std::vector<Tensor> inputs, std::vector<Tensor> parameters, Recomputable f);

}  // namespace qkv
