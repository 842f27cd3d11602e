// Encoder and decoder: PyTorch's Bahdanau model step for step, the book's sizes, decoding against teacher forcing,
// beams, probes.
#include "qkv/models/seq2seq.h"

#include <gtest/gtest.h>

#include <cmath>

#include "counting_new.h"
#include "qkv/attention/weights.h"
#include "qkv/core/parallel.h"
#include "qkv/io/safetensors.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"
#include "qkv/train/optimizer.h"
#include "support/near.h"
#include "support/threads.h"
#include "unit/models/model_checks.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

using qkv_test::expect_near_largest;

// What a probe saw last, as a matrix (B, 1, T, S).
struct LastWeights : Probe {
  std::string path;
  Tensor matrix;
  int calls = 0;
  void attention(std::string_view where, const Weights& weights) override {
    path = where;
    matrix = weights.matrix();
    ++calls;
  }
};

// PyTorch's name of one of our parameters.
std::string torch_name(const std::string& name) {
  const auto layer = [&](const std::string& ours, const std::string& theirs) -> std::string {
    if (name.rfind(ours, 0) != 0) return "";
    const size_t dot = name.find('.', ours.size());
    return theirs + name.substr(dot + 1) + "_l" + name.substr(ours.size(), dot - ours.size());
  };
  if (name == "encoder.embedding.weight") return "source.weight";
  if (name == "decoder.embedding.weight") return "target.weight";
  if (name.rfind("decoder.attention.", 0) == 0) return name.substr(18) + ".weight";
  if (const auto found = layer("encoder.recurrent.layers.", "encoder."); !found.empty()) return found;
  if (const auto found = layer("decoder.recurrent.layers.", "decoder."); !found.empty()) return found;
  return name;
}

TEST(Seq2Seq, BahdanauFollowsPyTorchForTenSteps) {
  const SafetensorsFile golden(QKV_SOURCE_DIR "/tests/golden/bahdanau.safetensors");
  const auto ids = [&](const char* name) { return golden.array(std::string("input.") + name).to_ids(name); };
  const Ids source = ids("source"), lens = ids("lens"), target_in = ids("target_in"), targets = ids("targets"),
            target_lens = ids("target_lens");
  const auto tensor = [&](const std::string& kind, const std::string& name, const Shape& shape) {
    return golden.tensor(kind + torch_name(name)).viewed(shape);  // w_v is a matrix of one row there
  };
  Seq2Seq model({.embed = 6, .hidden = 8, .layers = 2, .dropout = 0}, {13, 11}, Rng(1));
  each_tensor(model, [&](const std::string& name, Tensor& t) { t = parameter(tensor("start.", name, t.shape())); });
  Parameters all = flatten(model);
  ASSERT_EQ(all.entries().size(), 23u);
  Ids wanted = Ids::empty({5, 4});
  for (int64_t i = 0; i < 20; ++i) wanted.mutable_ptr()[i] = i % 4 < target_lens.ptr()[i / 4] ? targets.ptr()[i] : -1;

  LastWeights probe;
  expect_near_largest(model.logits(source, lens, target_in, {.probe = &probe}), golden.tensor("logits"), 1e-5,
                      "logits");
  EXPECT_EQ(probe.path, "decoder.attention");
  expect_near_largest(probe.matrix.viewed({5, 4, 6}), golden.tensor("weights"), 1e-5, "weights");

  Adam adam;
  GradArena arena = all.grad_arena();
  const Tensor losses = golden.tensor("losses");
  for (int64_t step = 0; step < 10; ++step) {
    Tape tape(arena);
    const Tensor features = model.features(source, lens, target_in, {.training = true}, target_lens);
    const Tensor sum = linear_cross_entropy(features, model.output.weight, model.output.bias, wanted,
                                            {.ignore_id = -1, .reduction = Reduction::sum});
    const Tensor loss = scale(sum, 0.25f);
    EXPECT_NEAR(loss.item(), losses.ptr()[step], 1e-5 * losses.ptr()[step]) << "step " << step;
    tape.backward(loss);
    if (step == 0)
      for (const auto& p : parameters(model))
        expect_near_largest(tape.grad(p.tensor), tensor("grad.", p.name, p.tensor.shape()), 1e-5,
                            "gradient of " + p.name);
    adam.step(all, arena.flat(), 0.005f, clip_factor(norm(arena.flat()), 1));
  }
  for (const auto& p : parameters(model))
    expect_near_largest(p.tensor, tensor("end.", p.name, p.tensor.shape()), 1e-4, "end of " + p.name);
}

TEST(Seq2Seq, TheBooksModelsHaveTheBooksParameters) {
  Seq2SeqConfig book{.embed = 32, .hidden = 32, .layers = 2};
  EXPECT_EQ(count_parameters(Seq2Seq(book, {184, 201}, Rng(1))), 49449);
  book.attention = ScorerKind::none;
  EXPECT_EQ(count_parameters(Seq2Seq(book, {184, 201}, Rng(1))), 47369);
  EXPECT_EQ(count_parameters(Seq2Seq({.layers = 2}, {194, 214}, Rng(1))), 2066390);
}

TEST(Seq2Seq, StartsAsTheBooksPyTorchModel) {
  const Seq2Seq model({.embed = 32, .hidden = 32, .layers = 2}, {184, 201}, Rng(1));
  const auto bounded = [](const Tensor& t, double fan) {
    const float most = max(abs(t)).item(), bound = static_cast<float>(std::sqrt(6 / fan));
    EXPECT_LE(most, bound);
    EXPECT_GT(most, 0.9f * bound);
  };
  bounded(model.encoder.recurrent.layers[0].weight_ih, 96 + 32);
  bounded(model.decoder.recurrent.layers[0].weight_ih, 96 + 64);
  bounded(model.decoder.recurrent.layers[1].weight_hh, 96 + 32);
  bounded(model.decoder.attention.as<Additive>()->w_v, 32 + 1);
  bounded(model.output.weight, 201 + 32);
  EXPECT_GT(max(abs(model.encoder.embedding.weight)).item(), 2.5f);
  EXPECT_LE(max(abs(model.decoder.recurrent.layers[0].bias_hh)).item(), 1 / std::sqrt(32.f));
}

constexpr VocabularySizes kWords{9, 7};

struct Variant {
  const char* name;
  Seq2SeqConfig options;
};
std::vector<Variant> variants() {
  const Seq2SeqConfig base{.embed = 5, .hidden = 10, .layers = 2};
  std::vector<Variant> list;
  const auto add = [&](const char* name, auto&& change) {
    list.push_back({name, base});
    change(list.back().options);
  };
  add("additive", [](Seq2SeqConfig&) {});
  add("none", [](Seq2SeqConfig& o) { o.attention = ScorerKind::none; });
  add("dot", [](Seq2SeqConfig& o) { o.attention = ScorerKind::dot; });
  add("scaled dot, lstm", [](Seq2SeqConfig& o) {
    o.attention = ScorerKind::scaled_dot;
    o.cell = CellKind::lstm;
  });
  add("cosine", [](Seq2SeqConfig& o) { o.attention = ScorerKind::cosine; });
  add("bilinear, both ways", [](Seq2SeqConfig& o) {
    o.attention = ScorerKind::bilinear;
    o.bidirectional = true;
  });
  add("additive, lstm, both ways", [](Seq2SeqConfig& o) {
    o.cell = CellKind::lstm;
    o.bidirectional = true;
  });
  add("additive, reset before the product, one layer", [](Seq2SeqConfig& o) {
    o.cell = CellKind::gru_before;
    o.layers = 1;
  });
  add("none, both ways, lstm", [](Seq2SeqConfig& o) {
    o.attention = ScorerKind::none;
    o.bidirectional = true;
    o.cell = CellKind::lstm;
  });
  add("additive, through the padding", [](Seq2SeqConfig& o) { o.skip_padding = false; });
  return list;
}

TEST(Seq2Seq, SaysWhatItConsistsOfAndWhatItsStateHolds) {
  const Ids source = some_ids(2, 5, 9, 1), lens({2}, {5, 3});
  for (const auto& [name, options] : variants()) {
    expect_layout<Seq2Seq>(options, kWords, name);
    Seq2SeqConfig words = options;
    words.values = SourceValues::words;
    expect_layout<Seq2Seq>(words, kWords, name);
    const ModelFacts facts = options.facts();
    EXPECT_FALSE(facts.longest_input) << name;
    const Seq2Seq::State state = Seq2Seq(options, kWords, Rng(1)).start(source, lens, {});
    ASSERT_EQ(facts.source_maps().has_value(), state.keys.defined()) << name;
    if (!facts.source_maps()) continue;
    EXPECT_EQ(state.keys.numel() + state.values.numel(), facts.source_floats * source.numel()) << name;
    EXPECT_EQ(facts.source_maps()->count(), 1) << name;
  }
}

TEST(Seq2Seq, SaysWhatItIsInOneLine) {
  EXPECT_EQ(Seq2SeqConfig{}.facts().summary.in(Language::en),
            "seq2seq, gru, 1 layer, hidden 256, embed 256, attention additive");
  const Seq2SeqConfig other{.embed = 32,
                            .hidden = 32,
                            .layers = 2,
                            .cell = CellKind::lstm,
                            .attention = ScorerKind::none,
                            .bidirectional = true};
  EXPECT_EQ(other.facts().summary.in(Language::en),
            "seq2seq, bidirectional lstm, 2 layers, hidden 32, embed 32, attention none");
}

TEST(Seq2Seq, DecodingStepByStepIsTeacherForcing) {
  const Ids source = some_ids(4, 6, 9, 1), target = some_ids(4, 5, 7, 2), lens({4}, {6, 2, 4, 1});
  for (const auto& [name, options] : variants()) {
    const Seq2Seq model(options, kWords, Rng(3));
    LastWeights all, one;
    const Tensor logits = model.logits(source, lens, target, {.probe = &all});
    EXPECT_EQ(all.calls, options.attention == ScorerKind::none ? 0 : 1) << name;
    Seq2Seq::State state = model.start(source, lens, {});
    for (int64_t t = 0; t < 5; ++t) {
      const Tensor step = model.step(state, column(target, t), {.probe = &one});
      expect_near(step, Array(reshape(slice(logits, 1, t, t + 1), {4, 7})), 1e-5, name);
      if (options.attention == ScorerKind::none) continue;
      EXPECT_EQ(one.path, "decoder.attention");
      ASSERT_EQ(one.matrix.shape(), Shape({4, 1, 1, 6})) << name;
      expect_near(one.matrix, Array(slice(all.matrix, 2, t, t + 1)), 1e-5, name);
      for (int64_t b = 0; b < 4; ++b)
        for (int64_t j = lens.ptr()[b]; j < 6; ++j) ASSERT_EQ(one.matrix.at({b, 0, 0, j}), 0.f) << name;
    }
  }
}

TEST(Seq2Seq, PaddingAndBatchMatesChangeNoBit) {
  const Ids source = some_ids(5, 6, 9, 1), target = some_ids(5, 4, 7, 2), lens({5}, {6, 2, 4, 1, 3});
  for (const auto& [name, options] : variants()) {
    if (!options.skip_padding) continue;
    const Seq2Seq model(options, kWords, Rng(3));
    const Tensor all = model.logits(source, lens, target, {});
    for (int64_t b = 0; b < 5; ++b) {
      const Ids alone = source.part(b * 6, {1, 6}).part(0, {1, lens.ptr()[b]});
      expect_same(slice(all, 0, b, b + 1), model.logits(alone, {}, target.part(b * 4, {1, 4}), {}), name);
    }
  }
}

TEST(Seq2Seq, StepsBeyondATargetsEndAreZeroAndChangeNothingElse) {
  const Ids source = some_ids(4, 6, 9, 1), target = some_ids(4, 5, 7, 2), lens({4}, {6, 2, 4, 1}),
            ends({4}, {2, 5, 0, 4});
  for (const auto& [name, options] : variants()) {
    const Seq2Seq model(options, kWords, Rng(3));
    const qkv::Run training{.training = true, .rng = Rng(4)};
    const Tensor whole = model.features(source, lens, target, training),
                 cut = model.features(source, lens, target, training, ends);
    for (int64_t b = 0; b < 4; ++b) {
      const int64_t n = ends.ptr()[b];
      expect_same(slice(slice(cut, 0, b, b + 1), 1, 0, n), slice(slice(whole, 0, b, b + 1), 1, 0, n), name);
      const Tensor beyond = slice(slice(cut, 0, b, b + 1), 1, n, 5);
      for (float v : beyond.data()) ASSERT_EQ(v, 0.f) << name;
    }
  }
}

TEST(Seq2Seq, GradientsReachEveryParameter) {
  for (const auto& [name, options] : variants())
    expect_gradients(Seq2Seq(options, kWords, Rng(3)), 7, 1e-2f, 5e-3, name);
}

TEST(Seq2Seq, SelectedRowsGoOnAsTheirParents) {
  for (const auto& [name, options] : variants()) expect_selected_rows_go_on(Seq2Seq(options, kWords, Rng(3)), name);
}

TEST(Seq2Seq, ThreadsAndProbesChangeNoBitOfAGradient) {
  const Ids source = some_ids(50, 9, 90, 1), target = some_ids(50, 8, 70, 2);
  Ids lens = Ids::empty({50}), ends = Ids::empty({50});
  for (int64_t b = 0; b < 50; ++b) {
    lens.mutable_ptr()[b] = static_cast<int32_t>(1 + b * 7 % 9);
    ends.mutable_ptr()[b] = static_cast<int32_t>(b * 5 % 9);
  }
  Seq2Seq model({.embed = 40, .hidden = 48, .layers = 2, .bidirectional = true}, {90, 70}, Rng(3));
  const Parameters all = flatten(model);
  const auto gradient = [&](int count, Probe* probe) {
    set_threads(count);
    GradArena arena = all.grad_arena();
    Tape tape(arena);
    const Tensor y = model.features(source, lens, target, {.training = true, .rng = Rng(4), .probe = probe}, ends);
    tape.backward(sum(mul(y, y)));
    return arena.flat().copied();
  };
  const qkv_test::ThreadsScope threads_scope;
  LastWeights probe;
  const Tensor one = gradient(1, nullptr), three = gradient(3, nullptr), probed = gradient(2, &probe);
  EXPECT_EQ(probe.matrix.shape(), Shape({50, 1, 8, 9}));
  expect_same(one, three, "threads");
  expect_same(one, probed, "probe");
}

TEST(Seq2Seq, AfterWarmUpATrainingStepCallsNoOperatorNew) {
  const Ids source = some_ids(8, 6, 9, 1), target = some_ids(8, 5, 7, 2), lens({8}, {6, 2, 4, 1, 3, 5, 6, 6}),
            ends({8}, {5, 1, 2, 3, 4, 5, 5, 0});
  for (const CellKind cell : {CellKind::gru, CellKind::lstm})
    for (const ScorerKind attention : {ScorerKind::none, ScorerKind::additive, ScorerKind::scaled_dot}) {
      const bool both = attention != ScorerKind::scaled_dot;
      Seq2Seq model(
          {.embed = 5, .hidden = 10, .layers = 2, .cell = cell, .attention = attention, .bidirectional = both}, kWords,
          Rng(3));
      const Parameters all = flatten(model);
      GradArena arena = all.grad_arena();
      const auto step = [&] {
        Tape tape(arena);
        const Tensor y = model.features(source, lens, target, {.training = true, .rng = Rng(4)}, ends);
        tape.backward(linear_cross_entropy(y, model.output.weight, model.output.bias, target, {.ignore_id = 1}));
      };
      for (int i = 0; i < 5; ++i) step();
      const int64_t news = operator_new_calls(), misses = Pool::of_thread().misses();
      for (int i = 0; i < 5; ++i) step();
      EXPECT_EQ(operator_new_calls(), news);
      EXPECT_EQ(Pool::of_thread().misses(), misses);
    }
}

TEST(Seq2Seq, ErrorsSayWhatDoesNotFit) {
  const Seq2SeqConfig base{.embed = 5, .hidden = 10, .layers = 2};
  const Seq2Seq model(base, kWords, Rng(1));
  Seq2SeqConfig wrong = base;
  wrong.bidirectional = true;
  wrong.attention = ScorerKind::dot;
  expect_error(
      [&] { Seq2Seq(wrong, kWords, Rng(1)); },
      "[seq2seq] queries of 10 and states of 20 have no dot product: a bidirectional encoder needs additive or "
      "bilinear scores");
  expect_error([&] { Seq2Seq(base, {0, 7}, Rng(1)); }, "[seq2seq] vocabularies need at least one token, got 0 and 7");
  expect_error([&] { model.features(some_ids(2, 3, 9, 1), {}, some_ids(3, 3, 7, 1), {}); },
               "[seq2seq] source and target differ in rows: (2, 3) and (3, 3)");
  expect_error([&] { model.start(some_ids(2, 3, 9, 1), Ids({1}, {3}), {}); },
               "[seq2seq] source lengths have shape (1,) for source ids (2, 3)");
  Seq2Seq::State state = model.start(some_ids(2, 3, 9, 1), {}, {});
  expect_error([&] { model.step(state, Ids({1}, {3}), {}); },
               "[seq2seq] expected one token for each of 2 rows, got ids of shape (1,)");
  expect_error([&] { model.select(state, std::vector<int32_t>{2}); }, "[seq2seq] row 2 is not in 0 to 1");
}

}  // namespace
}  // namespace qkv::tests
