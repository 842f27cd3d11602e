// A module is a struct whose `visit(f)` names its fields: tensors, modules, lists of modules. Everything that needs the
// parameters (counting, flattening, saving, optimizing) walks visit.
//
//   struct Linear {
//     Tensor weight, bias;
//     void visit(auto&& f) { f("weight", weight); f("bias", bias); }
//   };
//
// Copying a module shares its weights; clone() does not.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/pool.h"
#include "qkv/tensor/tape.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

struct NamedTensor {
  std::string name;  // "decoder.1.cross.to_q.weight"
  Tensor tensor;
};

namespace detail {

/// Takes any field.
struct AnyField {
  template <class Field>
  void operator()(std::string_view, Field&) const {}
};

}  // namespace detail

/// A struct with `void visit(auto&& f)`.
template <class M>
concept Module = requires(M& module, const detail::AnyField& f) {
  module.visit(f);
};

namespace detail {

template <class F>
struct FieldWalker {
  std::string prefix;
  F& f;

  void operator()(std::string_view name, Tensor& tensor) {
    if (tensor.defined()) f(prefix + std::string(name), tensor);
  }
  template <class Field>
  void operator()(std::string_view name, Field& field) {
    static_assert(Module<Field>,
                  "visit() names a field that is neither a Tensor, nor a module, nor a std::vector or std::optional of "
                  "them; a module has void visit(auto&& f)");
    FieldWalker inner{prefix + std::string(name) + ".", f};
    field.visit(inner);
  }
  template <class Field>
  void operator()(std::string_view name, std::vector<Field>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) (*this)(std::string(name) + "." + std::to_string(i), fields[i]);
  }
  template <class Field>
  void operator()(std::string_view name, std::optional<Field>& field) {
    if (field) (*this)(name, *field);
  }
};

}  // namespace detail

/// Calls f(name, Tensor&) for every tensor of the module, tied ones each time they are met.
template <Module M, class F>
void each_tensor(M& module, F&& f) {
  detail::FieldWalker<F> walker{"", f};
  module.visit(walker);
}

/// The parameters with their dotted names; a tied one stands once, under its first name.
template <Module M>
std::vector<NamedTensor> parameters(M module) {
  std::vector<NamedTensor> list;
  std::set<uint32_t> seen;
  each_tensor(module, [&](const std::string& name, Tensor& t) {
    if (t.is_parameter() && seen.insert(t.leaf_id()).second) list.push_back({name, t});
  });
  return list;
}

struct NamedShape {
  std::string name;
  Shape shape;
};

/// Names and shapes of the parameters of the module that make() returns; no memory is allocated for them.
template <class Make>
std::vector<NamedShape> layout_of(const Make& make) {
  const ShapesOnly scope;
  std::vector<NamedShape> list;
  for (const auto& p : parameters(make())) list.push_back({p.name, p.tensor.shape()});
  return list;
}

/// Number of trainable elements.
template <Module M>
int64_t count_parameters(const M& module) {
  int64_t n = 0;
  for (const auto& p : parameters(module)) n += p.tensor.numel();
  return n;
}

/// All parameters of a model in one flat buffer, each beginning at a multiple of 16 elements; the padding stays zero.
/// Those of a model that is only read may stay where they are (`in_place`): then there is no flat buffer.
class Parameters {
 public:
  struct Entry {
    std::string name;
    Shape shape;
    int64_t offset;
  };

  const Tensor& flat() const { return flat_; }
  const std::vector<Entry>& entries() const { return entries_; }
  /// Number of trainable elements, without the padding.
  int64_t count() const;
  /// The values of entry i, sharing memory; `in` gives the same for any buffer laid out like flat().
  Tensor values(size_t i) const { return flat_.defined() ? in(flat_, i) : kept_[i]; }
  Tensor in(const Tensor& like_flat, size_t i) const { return like_flat.part(entries_[i].offset, entries_[i].shape); }
  /// The name of the entry whose parameter had that number before flatten(); empty if there is none.
  std::string name_before(uint32_t leaf) const;
  /// A gradient buffer for one tape at a time.
  GradArena grad_arena() const { return GradArena(first_leaf_, offsets_); }

 private:
  template <Module M>
  friend Parameters flatten(M& model);
  template <Module M>
  friend Parameters in_place(const M& model);
  void lay_out(const std::vector<NamedTensor>& list);
  Tensor leaf(size_t i) const;

  Tensor flat_;
  std::vector<Tensor> kept_;  // of every entry, without a flat buffer
  std::vector<Entry> entries_;
  std::vector<int64_t> offsets_;       // of every entry, then the total
  std::vector<uint32_t> leaf_before_;  // of every entry
  uint32_t first_leaf_ = 0;
};

/// Moves the parameters of a model into one flat buffer; the model's tensors become views of it. Tied parameters stay
/// tied.
template <Module M>
Parameters flatten(M& model) {
  Parameters all;
  const auto list = parameters(model);
  all.lay_out(list);
  each_tensor(model, [&](const std::string&, Tensor& t) {
    for (size_t i = 0; i < list.size(); ++i)
      if (t.is_parameter() && list[i].tensor.leaf_id() == t.leaf_id()) {
        t = all.leaf(i);
        return;
      }
  });
  Pool::of_thread().trim();  // frees the old buffers of the parameters: nothing else has their sizes
  return all;
}

/// The parameters of a model where they are, for reading.
template <Module M>
Parameters in_place(const M& model) {
  Parameters all;
  for (const NamedTensor& p : parameters(model)) {
    all.entries_.push_back({p.name, p.tensor.shape(), 0});
    all.kept_.push_back(p.tensor.detached());
  }
  return all;
}

/// A model with the same values and memory of its own. Tied parameters stay tied.
template <Module M>
M clone(M model) {
  std::vector<std::pair<uint32_t, Tensor>> copies;
  each_tensor(model, [&](const std::string&, Tensor& t) {
    if (!t.is_parameter()) {
      t = t.copied();
      return;
    }
    for (const auto& [leaf, copy] : copies)
      if (leaf == t.leaf_id()) {
        t = copy;
        return;
      }
    copies.emplace_back(t.leaf_id(), parameter(t.copied()));
    t = copies.back().second;
  });
  return model;
}

/// The same weights, shared, as constants: a loss may depend on them, and they are not trained.
template <Module M>
M frozen(M model) {
  each_tensor(model, [](const std::string&, Tensor& t) { t = t.detached(); });
  return model;
}

}  // namespace qkv
