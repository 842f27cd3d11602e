// Tensors as a lab prints and draws them.
#pragma once

#include <string>
#include <vector>

#include "qkv/tensor/tensor.h"

namespace qkv::labs {

/// The numbers in nested brackets, a row a line: "[[[2, 3]],\n [[10, 11]]]"; at most so many decimals, trailing zeros left out.
std::string shown(const Tensor& x, int decimals = 4);
/// The elements in order.
std::vector<double> numbers(const Tensor& x);
/// max |a - b| of two tensors of one shape.
double largest_difference(const Tensor& a, const Tensor& b);
/// A small number in two digits, "1.2e-07", and 0 as "0".
std::string tiny(double x);
/// The Euclidean length of all elements.
double length_of(const Tensor& x);

}  // namespace qkv::labs
