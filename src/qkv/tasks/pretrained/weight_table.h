// From the names of weights in pretrained folders to ours: a table of rules per architecture, checked as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/run/model_file.h"
#include "qkv/tasks/pretrained/weights.h"

namespace QKV_API qkv {

/// What happens to a tensor on its way to us.
enum class WeightChange {
  copy,       // nothing: it stays where it is
  reshape,    // the same elements under our shape
  transpose,  // (in, out) -> (out, in)
};

/// "ours" is made from "theirs". A * in both names is the number of a layer. With `parts`, it is one of that many equal
/// stretches of the columns before a transpose, or of the rows otherwise.
struct WeightRule {
  std::string_view ours, theirs;
  WeightChange change = WeightChange::copy;
  int64_t part = 0, parts = 1;
  bool prefixed = true;  // false: the table's prefix is not before this name
};

/// A tensor that repeats another one, under another name: folders may have it, and it must be equal.
struct WeightRepeat {
  std::string_view repeat, of;
};

struct WeightTable {
  std::string_view architecture;  // for errors: "Marian"
  std::span<const WeightRule> rules;
  std::span<const WeightRepeat> repeats = {};
  std::span<const std::string_view> ignored = {};  // what a folder may have and we compute or do not need; * as above
  /// Before every name of theirs in this folder: some save the same model as a part of a larger one.
  std::string prefix = {};
};

/// Rules that depend on a folder's settings: those, and one more.
std::vector<WeightRule> with_rule(std::span<const WeightRule> rules, const WeightRule& more);

/// A rule, and the name of theirs that it gives for one of our names.
struct TheirName {
  const WeightRule* rule;
  std::string theirs;
};
/// Nothing if the table has no rule for the name.
std::optional<TheirName> rule_of(const WeightTable& table, const std::string& ours);

/// Applies a table to the weights of a folder.
class WeightMapping {
 public:
  /// Whether the table has a rule for one of our names.
  bool knows(const std::string& ours) const { return rule_of(table_, ours).has_value(); }
  /// Whether the folder has the tensor that becomes it.
  bool has(const std::string& ours) const { return weights_.has(source_of(ours).theirs); }
  WeightMapping(const WeightSource& weights, const WeightTable& table) : weights_(weights), table_(table) {}
  /// Refuses a tensor that is missing or of another shape. No element is read.
  void plan(const std::string& ours, const Shape& shape);
  /// Refuses tensors that no plan() asked for.
  void check_whole() const;
  /// Tensors that no plan() asked for.
  std::vector<std::string> left_over() const;
  /// Refuses a tensor that repeats another one and differs from it.
  void check_repeats() const;
  /// The shape that the folder's tensor should have, if it has another one.
  std::optional<Shape> other_shape(const std::string& ours, const Shape& shape) const;
  Tensor read(const std::string& ours, const Shape& shape) const;

 private:
  TheirName source_of(const std::string& ours) const;
  const WeightSource& weights_;
  const WeightTable& table_;
  std::set<std::string> used_;
};

/// The number of values of a folder's tensors, without those that repeat others or that nobody needs.
int64_t count_values(const WeightSource& weights, const WeightTable& table);

/// The weights of a folder, by name, into parameters that have their values already. A tensor of another shape is
/// refused before anything is read. Those named in `anew` keep their values.
LoadedByName load_by_name(const WeightSource& weights, const WeightTable& table, const Parameters& parameters,
                          const std::set<std::string>& anew = {});

/// The opposite direction: parameters under the names, in the shapes and in the layout of the table. `reshaped` gives
/// the shape of a tensor whose rule only says that it is another one. A parameter without a rule is refused.
std::map<std::string, Tensor> in_their_layout(const Parameters& parameters, const WeightTable& table,
                                              const std::function<Shape(const std::string& theirs)>& reshaped);

/// The model that make() returns, with the weights of a folder. Nothing is initialised and nothing copied that the
/// table does not change.
template <class Make>
auto with_pretrained_weights(const Make& make, const WeightSource& weights, const WeightTable& table) {
  auto model = [&] {
    const ShapesOnly scope;
    return make();
  }();
  WeightMapping mapping(weights, table);
  each_tensor(model, [&](const std::string& name, Tensor& t) {
    if (t.is_parameter()) mapping.plan(name, t.shape());
  });
  mapping.check_whole();
  std::map<uint32_t, Tensor> read;  // by leaf: tied ones are read once
  each_tensor(model, [&](const std::string& name, Tensor& t) {
    if (!t.is_parameter()) {
      t = zeros(t.shape());  // the bias that a norm does not have
      return;
    }
    auto& value = read[t.leaf_id()];
    if (!value.defined()) value = parameter(mapping.read(name, t.shape()), t.leaf_id());
    t = value;
  });
  return model;
}

}  // namespace qkv
