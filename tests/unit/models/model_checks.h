// Checks for every encoder-decoder: gradients against differences, and selected rows against their originals.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "qkv/models/model_facts.h"
#include "qkv/nn/module.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "unit/attention/cases.h"

namespace qkv::tests {

inline Ids some_ids(int64_t rows, int64_t columns, uint64_t below, uint64_t seed) {
  Ids ids = Ids::empty({rows, columns});
  for (int64_t i = 0; i < ids.numel(); ++i)
    ids.mutable_ptr()[i] = static_cast<int32_t>(Rng(seed).below(below, static_cast<uint64_t>(i)));
  return ids;
}

inline Ids column(const Ids& ids, int64_t c) {
  Ids out = Ids::empty({ids.size(0)});
  for (int64_t r = 0; r < ids.size(0); ++r) out.mutable_ptr()[r] = ids.ptr()[r * ids.size(1) + c];
  return out;
}

/// The parameters that a config lists are those of the model.
template <class Model, class Config>
void expect_layout(const Config& config, const VocabularySizes& words, const std::string& name) {
  const std::vector<NamedShape> said = config.layout(words);
  Model model(config, words, Rng(1));
  const Parameters all = flatten(model);
  ASSERT_EQ(said.size(), all.entries().size()) << name;
  for (size_t i = 0; i < said.size(); ++i) {
    EXPECT_EQ(said[i].name, all.entries()[i].name) << name;
    EXPECT_EQ(said[i].shape, all.entries()[i].shape) << name << ": " << said[i].name;
  }
}

/// Central differences of the whole model in training, on two elements of every parameter except those whose names end
/// in one of `skipped`.
template <class Model>
void expect_gradients(const Model& model, uint64_t target_vocabulary, float step, double tolerance,
                      const std::string& name, const std::string& skipped = "") {
  const Ids source = some_ids(4, 6, 9, 1), target = some_ids(4, 5, target_vocabulary, 2), lens({4}, {6, 2, 4, 3});
  const Tensor dy = uniform({4, 5, static_cast<int64_t>(target_vocabulary)}, Rng(5), -1, 1);
  const qkv::Run training{.training = true, .rng = Rng(4)};
  const auto loss = [&] { return sum(mul(model.logits(source, lens, target, training), dy)); };
  Tape tape;
  tape.backward(loss());
  const TapePause pause;
  for (const auto& p : parameters(model)) {
    if (!skipped.empty() && p.name.ends_with(skipped)) continue;
    const Tensor gradient = tape.grad(p.tensor);
    const float most = max(abs(gradient)).item();
    EXPECT_GT(most, 0.f) << name << ", " << p.name;
    for (const int64_t i : {int64_t{0}, p.tensor.numel() / 2}) {
      float& w = detail::writable(p.tensor)[i];
      const float before = w;
      w = before + step;
      const double above = loss().item();
      w = before - step;
      const double slope = (above - loss().item()) / (2 * double{step});
      w = before;
      EXPECT_NEAR(gradient.ptr()[i], slope, tolerance * std::max(1.0, double{most}))
          << name << ", " << p.name << "[" << i << "]";
    }
  }
}

/// Rows that are selected, repeated and reordered while decoding give the same bits as the originals.
template <class Model>
void expect_selected_rows_go_on(const Model& model, const std::string& name) {
  typename Model::State state = model.start(some_ids(3, 6, 9, 1), Ids({3}, {6, 2, 4}), {});
  model.step(state, Ids({3}, {1, 2, 3}), {});
  const typename Model::State before = state;
  const Tensor plain = model.step(state, Ids({3}, {4, 5, 6}), {});
  for (const std::vector<int32_t>& rows : {std::vector<int32_t>{2, 0}, {1, 1, 0, 2, 2}, {0, 1, 2}}) {
    typename Model::State chosen = before;
    model.select(chosen, rows);
    Ids tokens = Ids::empty({static_cast<int64_t>(rows.size())});
    for (size_t i = 0; i < rows.size(); ++i) tokens.mutable_ptr()[i] = rows[i] + 4;
    const Tensor logits = model.step(chosen, tokens, {});
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      expect_same(slice(logits, 0, at, at + 1), slice(plain, 0, rows[i], rows[i] + 1), name);
    }
  }
  // Rows of one sentence change places: their past moves, but their source need not.
  typename Model::State beams = before;
  model.select(beams, std::vector<int32_t>{0, 0, 1, 1});
  model.step(beams, Ids({4}, {1, 2, 3, 4}), {});
  typename Model::State swapped = beams;
  model.select(swapped, std::vector<int32_t>{1, 0, 3, 3});
  const Tensor a = model.step(beams, Ids({4}, {1, 1, 1, 1}), {}), b = model.step(swapped, Ids({4}, {1, 1, 1, 1}), {});
  const int64_t parents[] = {1, 0, 3, 3};
  for (int64_t i = 0; i < 4; ++i) expect_same(slice(b, 0, i, i + 1), slice(a, 0, parents[i], parents[i] + 1), name);
}

}  // namespace qkv::tests
