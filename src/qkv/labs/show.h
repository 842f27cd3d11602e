// Tensors and numbers as a lab prints and draws them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qkv/core/numbers.h"
#include "qkv/labs/lab.h"
#include "qkv/tensor/tensor.h"

namespace qkv::labs {

/// The numbers in nested brackets, one row per line: "[[[2, 3]],\n [[10, 11]]]"; at most `decimals` decimals, without
/// trailing zeros.
std::string shown(const Tensor& x, int decimals = 4);
/// The elements in order.
std::vector<double> numbers(const Tensor& x);
/// max |a - b| of two tensors of the same shape.
double largest_difference(const Tensor& a, const Tensor& b);
/// A small number with two digits, "1.2e-07", and 0 as "0".
std::string tiny(double x);
/// The Euclidean length of all elements.
double length_of(const Tensor& x);

/// The middle value, or the mean of the two in the middle.
double median(std::vector<double> values);

/// With `decimals` decimals, "0.250".
std::string rounded(double x, int decimals);
/// A share from 0 to 1 as "98.5 %".
std::string percent(double share);
/// "one, two, three".
Text in_list(const std::vector<Text>& items);
/// One below the other.
Text in_lines(const std::vector<Text>& lines);
/// "Head 1", "Head 2" and so on: titles of heat maps.
std::vector<Label> head_names(int64_t count);
/// A table whose first column is in words.
void named_table(Page& page, std::vector<Text> head,
                 const std::vector<std::pair<Text, std::vector<std::string>>>& rows);

}  // namespace qkv::labs
