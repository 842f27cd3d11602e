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

std::vector<WeightRule> with_rule(std::span<const WeightRule> rules, const WeightRule& more) {
  std::vector<WeightRule> out(rules.begin(), rules.end());
  out.push_back(more);
  return out;
}

std::optional<TheirName> rule_of(const WeightTable& table, const std::string& ours) {
  for (const WeightRule& rule : table.rules)
    if (const auto star = match(rule.ours, ours))
      return TheirName{&rule, (rule.prefixed ? table.prefix : "") + filled(rule.theirs, *star)};
  return {};
}

TheirName WeightMapping::source_of(const std::string& ours) const {
  if (const auto found = rule_of(table_, ours)) return *found;
  fail("[pretrained] the table of ", table_.architecture, " has no rule for ", ours);
}

void WeightMapping::plan(const std::string& ours, const Shape& shape) {
  const auto [rule, theirs] = source_of(ours);
  require(weights_.has(theirs),
          "{folder}: has no tensor \"{name}\", which a {architecture} model of its config.json needs",
          "folder"_a = weights_.folder(), "name"_a = theirs, "architecture"_a = table_.architecture);
  const auto expected = other_shape(ours, shape);
  require(!expected, "{file}: \"{name}\" has shape {found}, but config.json says {expected}",
          "file"_a = weights_.path(theirs), "name"_a = theirs, "found"_a = weights_.shape(theirs),
          "expected"_a = expected.value_or(shape));
  used_.insert(theirs);
}

std::optional<Shape> WeightMapping::other_shape(const std::string& ours, const Shape& shape) const {
  const auto [rule, theirs] = source_of(ours);
  const Shape& found = weights_.shape(theirs);
  const std::optional<Shape> expected = shape_in_file(*rule, shape);
  const bool fits = expected ? found == *expected : found.numel() == shape.numel() * rule->parts;
  return fits ? std::nullopt : std::optional(expected.value_or(shape));
}

std::vector<std::string> WeightMapping::left_over() const {
  std::vector<std::string> out;
  for (const std::string& name : weights_.names()) {
    const auto is_named = [&](std::string_view pattern) {
      return name.starts_with(table_.prefix) && match(pattern, name.substr(table_.prefix.size()));
    };
    const bool known =
        used_.contains(name) ||
        std::ranges::any_of(table_.ignored, [&](std::string_view p) { return match(p, name) || is_named(p); }) ||
        std::ranges::any_of(table_.repeats, [&](const WeightRepeat& r) { return r.repeat == name; });
    if (!known) out.push_back(name);
  }
  return out;
}

void WeightMapping::check_whole() const {
  for (const std::string& name : left_over())
    refuse("{file}: a {architecture} model of its config.json has no tensor \"{name}\"", "file"_a = weights_.path(name),
           "architecture"_a = table_.architecture, "name"_a = name);
  check_repeats();
}

void WeightMapping::check_repeats() const {
  for (const auto& [repeat, of] : table_.repeats) {
    const std::string copy(repeat), behind = table_.prefix + std::string(of),
                                    first = weights_.has(behind) ? behind : std::string(of);
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
    if (rule->part + 1 == rule->parts) weights_.release(theirs);
    return out;
  }
  return found.part(rule->part * shape.numel(), shape);
}

int64_t count_values(const WeightSource& weights, const WeightTable& table) {
  int64_t count = 0;
  for (const std::string& name : weights.names()) {
    const bool counted = std::ranges::any_of(table.rules, [&](const WeightRule& rule) {
      const std::string_view prefix = rule.prefixed ? table.prefix : "";
      return name.starts_with(prefix) && match(rule.theirs, std::string_view(name).substr(prefix.size()));
    });
    if (counted) count += weights.shape(name).numel();
  }
  return count;
}

LoadedByName load_by_name(const WeightSource& weights, const WeightTable& table, const Parameters& parameters,
                          const std::set<std::string>& anew) {
  WeightMapping mapping(weights, table);
  LoadedByName out;
  std::vector<size_t> found;
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const Parameters::Entry& entry = parameters.entries()[i];
    if (anew.contains(entry.name) || !mapping.knows(entry.name) || !mapping.has(entry.name)) {
      out.fresh.push_back(entry.name);
      continue;
    }
    if (const auto expected = mapping.other_shape(entry.name, entry.shape)) {
      const std::string theirs = rule_of(table, entry.name)->theirs;
      refuse("{file}: \"{name}\" has shape {shape}, but the model of the configuration has {own}",
             "file"_a = weights.path(theirs), "name"_a = theirs, "shape"_a = weights.shape(theirs),
             "own"_a = *expected);
    }
    mapping.plan(entry.name, entry.shape);
    found.push_back(i);
  }
  out.dropped = mapping.left_over();
  mapping.check_repeats();
  for (const size_t i : found) {
    const Tensor read = mapping.read(parameters.entries()[i].name, parameters.entries()[i].shape);
    std::copy_n(read.ptr(), read.numel(), parameters.values(i).mutable_ptr());
  }
  return out;
}

namespace {

// Puts the columns of one part, transposed, to their place: (columns of one part, rows) -> (rows, all columns).
void put_transposed(const Tensor& ours, const WeightRule& rule, Tensor& theirs) {
  const int64_t columns = ours.size(0), rows = ours.size(1), all = columns * rule.parts, first = columns * rule.part;
  constexpr int64_t kBlock = 32;  // both sides stay in the cache
  float* const to = theirs.mutable_ptr();
  parallel_ranges(rows, kBlock, static_cast<double>(ours.numel()), [&](int64_t begin, int64_t end) {
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
      for (int64_t r = begin; r < end; ++r)
        for (int64_t c = c0; c < std::min(columns, c0 + kBlock); ++c)
          to[r * all + first + c] = ours.ptr()[c * rows + r];
  });
}

}  // namespace

std::map<std::string, Tensor> in_their_layout(const Parameters& parameters, const WeightTable& table,
                                              const std::function<Shape(const std::string& theirs)>& reshaped) {
  std::map<std::string, Tensor> out;
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const Parameters::Entry& entry = parameters.entries()[i];
    const auto named = rule_of(table, entry.name);
    require(named.has_value(), "the format of {architecture} models has no place for \"{name}\"",
            "architecture"_a = table.architecture, "name"_a = entry.name);
    const auto& [rule, theirs] = *named;
    const Tensor ours = parameters.values(i);
    if (rule->change == WeightChange::reshape) {
      out[theirs] = ours.viewed(reshaped(theirs));
    } else if (rule->change == WeightChange::copy && rule->parts == 1) {
      out[theirs] = ours;
    } else {
      Tensor& whole = out[theirs];
      if (!whole.defined()) whole = Tensor::empty(*shape_in_file(*rule, entry.shape));
      if (rule->change == WeightChange::transpose)
        put_transposed(ours, *rule, whole);
      else
        std::copy_n(ours.ptr(), ours.numel(), whole.mutable_ptr() + rule->part * ours.numel());
    }
  }
  return out;
}

}  // namespace qkv
