// Writing numbers and tensors out.
#include "qkv/labs/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace qkv::labs {
namespace {

// -0.0001 at three decimals is 0, not -0.
std::string number(float value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != text.npos && std::isfinite(value)) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string nested(const Tensor& x, int axis, int64_t offset, int decimals) {
  if (axis == x.rank()) return number(x.ptr()[offset], decimals);
  const int64_t stride = x.shape().product(axis + 1, x.rank());
  std::string out = "[";
  for (int64_t i = 0; i < x.size(axis); ++i) {
    if (i > 0) out += axis + 1 == x.rank() ? ", " : ",\n" + std::string(static_cast<size_t>(axis + 1), ' ');
    out += nested(x, axis + 1, offset + i * stride, decimals);
  }
  return out + "]";
}

}  // namespace

std::string shown(const Tensor& x, int decimals) { return nested(x, 0, 0, decimals); }

std::vector<double> numbers(const Tensor& x) { return {x.data().begin(), x.data().end()}; }

double largest_difference(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "[largest_difference] shapes differ: ", a.shape(), " and ", b.shape());
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double difference = std::abs(static_cast<double>(a.ptr()[i]) - b.ptr()[i]);
    worst = std::isnan(difference) ? difference : std::max(worst, difference);
    if (std::isnan(worst)) break;
  }
  return worst;
}

std::string tiny(double x) { return x == 0 ? "0" : fmt::format("{:.1e}", x); }

double length_of(const Tensor& x) {
  double sum = 0;
  for (float v : x.data()) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string rounded(double x, int decimals) { return fmt::format("{:.{}f}", x, decimals); }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

Text in_list(const std::vector<Text>& items) {
  Text list;
  for (const Text& item : items) list = list.empty() ? item : tr("{list}, {item}", "list"_a = list, "item"_a = item);
  return list;
}

Text in_lines(const std::vector<Text>& lines) {
  Text all;
  for (const Text& line : lines)  // a line break is the same in every language: no text of the catalogue
    all = all.empty() ? line : Text("{above}\n{line}", {{"above", all}, {"line", line}});
  return all;
}

std::vector<Label> head_names(int64_t count) {
  std::vector<Label> names;
  for (int64_t head = 1; head <= count; ++head) names.emplace_back(tr("Head {head}", "head"_a = head));
  return names;
}

void named_table(Page& page, std::vector<Text> head,
                 const std::vector<std::pair<Text, std::vector<std::string>>>& rows) {
  std::vector<std::vector<Text>> cells;
  for (const auto& [name, values] : rows) {
    cells.push_back({name});
    for (const std::string& value : values) cells.back().emplace_back(value);
  }
  page.word_table(std::move(head), std::move(cells));
}

}  // namespace qkv::labs
