// Matches names, checks shapes before anything is read, and changes layouts.
#include "qkv/tasks/pretrained/weight_table.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"

namespace qkv {
namespace {

// The number in the place of the * of a pattern; "" for a pattern without *, nothing if the name does not match.
std::optional<std::string> match(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view front = pattern.substr(0, star), back = pattern.substr(star + 1);
  if (name.size() <= front.size() + back.size() || !name.starts_with(front) || !name.ends_with(back)) return {};
  const std::string_view middle = name.substr(front.size(), name.size() - front.size() - back.size());
  if (middle.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return std::string(middle);
}

std::string filled(std::string_view pattern, const std::string& star) {
  std::string out(pattern);
  if (const size_t at = out.find('*'); at != std::string::npos) out.replace(at, 1, star);
  return out;
}

// The shape in the file of what becomes `ours`; nothing for reshape, where only the count matters.
std::optional<Shape> shape_in_file(const WeightRule& rule, const Shape& ours) {
  if (rule.change == WeightChange::reshape) return {};
  Shape out = ours;
  if (rule.change == WeightChange::transpose)
    out = Shape({ours[1], ours[0] * rule.parts});
  else
    out.set(0, ours[0] * rule.parts);
  return out;
}

// (rows, columns) -> (columns of one part, rows).
Tensor transposed_part(const Tensor& x, const WeightRule& rule) {
  const int64_t rows = x.size(0), all = x.size(1), columns = all / rule.parts, first = columns * rule.part;
  Tensor out = Tensor::empty({columns, rows});
  constexpr int64_t kBlock = 32;  // both sides stay in the cache
  float* const to = out.mutable_ptr();
  parallel_ranges(columns, kBlock, static_cast<double>(out.numel()), [&](int64_t begin, int64_t end) {
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
      for (int64_t c = begin; c < end; ++c)
        for (int64_t r = r0; r < std::min(rows, r0 + kBlock); ++r) to[c * rows + r] = x.ptr()[r * all + first + c];
  });
  return out;
}

}  // namespace

WeightMapping::Source WeightMapping::source_of(const std::string& ours) const {
  for (const WeightRule& rule : table_.rules)
    if (const auto star = match(rule.ours, ours)) return {&rule, table_.prefix + filled(rule.theirs, *star)};
  fail("[pretrained] the table of ", table_.architecture, " has no rule for ", ours);
}

void WeightMapping::plan(const std::string& ours, const Shape& shape) {
  const auto [rule, theirs] = source_of(ours);
  require(weights_.has(theirs),
          "{folder}: has no tensor \"{name}\", which a {architecture} model of its config.json needs",
          "folder"_a = weights_.folder(), "name"_a = theirs, "architecture"_a = table_.architecture);
  const Shape& found = weights_.shape(theirs);
  const std::optional<Shape> expected = shape_in_file(*rule, shape);
  const bool fits = expected ? found == *expected : found.numel() == shape.numel() * rule->parts;
  require(fits, "{file}: \"{name}\" has shape {found}, but config.json says {expected}",
          "file"_a = weights_.path(theirs), "name"_a = theirs, "found"_a = found,
          "expected"_a = expected.value_or(shape));
  used_.insert(theirs);
}

void WeightMapping::check_whole() const {
  for (const std::string& name : weights_.names()) {
    const auto is_named = [&](std::string_view pattern) {
      return name.starts_with(table_.prefix) && match(pattern, name.substr(table_.prefix.size()));
    };
    const bool known =
        used_.contains(name) ||
        std::ranges::any_of(table_.ignored, [&](std::string_view p) { return match(p, name) || is_named(p); }) ||
        std::ranges::any_of(table_.repeats, [&](const WeightRepeat& r) { return r.repeat == name; });
    require(known, "{file}: a {architecture} model of its config.json has no tensor \"{name}\"",
            "file"_a = weights_.path(name), "architecture"_a = table_.architecture, "name"_a = name);
  }
  check_repeats();
}

void WeightMapping::check_repeats() const {
  for (const auto& [repeat, of] : table_.repeats) {
    const std::string copy(repeat), first = table_.prefix + std::string(of);
    if (!weights_.has(copy)) continue;
    const Tensor a = weights_.tensor(copy), b = weights_.tensor(first);
    const bool equal =
        a.shape() == b.shape() && std::memcmp(a.ptr(), b.ptr(), static_cast<size_t>(a.numel()) * sizeof(float)) == 0;
    require(equal, "{file}: \"{name}\" differs from \"{other}\", although config.json ties them",
            "file"_a = weights_.path(copy), "name"_a = copy, "other"_a = first);
    weights_.release(copy);
  }
}

Tensor WeightMapping::read(const std::string& ours, const Shape& shape) const {
  const auto [rule, theirs] = source_of(ours);
  const Tensor found = weights_.tensor(theirs);
  if (rule->change == WeightChange::transpose) {
    Tensor out = transposed_part(found, *rule);
    weights_.release(theirs);
    return out;
  }
  return found.part(rule->part * shape.numel(), shape);
}

}  // namespace qkv
