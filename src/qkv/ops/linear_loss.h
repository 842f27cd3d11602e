// The last layer of a classifier over many classes together with its loss.
#pragma once

#include "qkv/core/api.h"
#include "qkv/ops/loss.h"

namespace QKV_API qkv {

/// cross_entropy(x weight^T + bias, targets, options) without an array of all logits: they exist for one chunk of rows
/// at a time, and backward recomputes them. x (..., D), weight (V, D), bias (V) or absent, targets (...) -> () or, not
/// reduced, (...)
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ids& targets,
                            const CrossEntropyOptions& options = {});

}  // namespace qkv
