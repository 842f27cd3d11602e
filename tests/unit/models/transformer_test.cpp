// The Transformer: the book's sizes, causality, padding, the cache against the whole prefix, threads, memory, errors.
#include "qkv/models/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "counting_new.h"
#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/tensor/pool.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"
#include "unit/models/model_checks.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

constexpr VocabularySizes kWords{9, 9};

struct Variant {
  std::string name;
  TransformerConfig options;
};
// a(q, k) = sum_d w_d q_d k_d, which no kernel has.
struct WeightedDot {
  Tensor w;  // (D)
  Tensor scores(const Tensor& q, const Tensor& k) const { return matmul(mul(q, w), k, Transpose::no, Transpose::yes); }
  void visit(auto&& f) { f("w", w); }
};

std::vector<Variant> variants() {
  const TransformerConfig base{.hidden = 8, .ffn = 12, .heads = 2, .layers = 2};
  std::vector<Variant> list;
  const auto add = [&](const char* name, auto&& change) {
    list.push_back({name, base});
    change(list.back().options);
  };
  add("the book's", [](TransformerConfig&) {});
  add("pre-norm, gelu", [](TransformerConfig& o) {
    o.norm = NormPlace::pre;
    o.activation = Activation::gelu;
  });
  add("silu", [](TransformerConfig& o) { o.activation = Activation::silu; });
  add("RMS norm after the sum, gelu-tanh", [](TransformerConfig& o) {
    o.norm_kind = NormKind::rms;
    o.activation = Activation::gelu_tanh;
  });
  add("gated", [](TransformerConfig& o) { o.ffn_kind = FeedForwardKind::gated; });
  add("Llama's layout", [](TransformerConfig& o) {
    o.heads = 4;
    o.key_heads = 2;
    o.norm = NormPlace::pre;
    o.norm_kind = NormKind::rms;
    o.norm_eps = 1e-6f;
    o.ffn_kind = FeedForwardKind::gated;
    o.activation = Activation::silu;
    o.positions = PositionKind::rotary;
    o.rotary_base = 500;
    o.rotary_pairs = RotaryPairs::halves;
    o.ffn_bias = o.norm_bias = o.output_bias = false;
  });
  add("tied, biases", [](TransformerConfig& o) {
    o.tied = true;
    o.bias = true;
  });
  add("learned positions", [](TransformerConfig& o) {
    o.positions = PositionKind::learned;
    o.max_positions = 6;
  });
  add("relative positions", [](TransformerConfig& o) {
    o.positions = PositionKind::relative;
    o.max_distance = 2;
  });
  add("rotary positions, one key head", [](TransformerConfig& o) {
    o.positions = PositionKind::rotary;
    o.key_heads = 1;
  });
  add("alibi, pre-norm", [](TransformerConfig& o) {
    o.positions = PositionKind::alibi;
    o.norm = NormPlace::pre;
  });
  add("no positions", [](TransformerConfig& o) { o.positions = PositionKind::none; });
  add("one key head", [](TransformerConfig& o) {
    o.heads = 4;
    o.key_heads = 1;
  });
  add("additive", [](TransformerConfig& o) { o.attention = ScorerKind::additive; });
  add("gaussian, uneven layers", [](TransformerConfig& o) {
    o.attention = ScorerKind::gaussian;
    o.layers = 1;
    o.decoder_layers = 3;
  });
  add("a scorer of its own", [](TransformerConfig& o) {
    o.own_scorer = [](const ScorerSizes& sizes, const Rng& rng) {
      return any_scorer(WeightedDot{parameter(uniform({sizes.query}, rng, 0.5f, 1.5f))});
    };
  });
  for (const AttentionKind kind : every<AttentionKind>()) {
    if (kind == AttentionKind::exact) continue;
    list.push_back({std::string(name_of(kind)), base});
    list.back().options.kind = {
        .kind = kind, .window = 1, .global_tokens = 1, .block = 2, .features = 5, .rank = 3, .landmarks = 2};
    list.back().options.max_positions = 9;
  }
  add("a window with rotary positions and one key head", [](TransformerConfig& o) {
    o.kind = {.kind = AttentionKind::window, .window = 2};
    o.positions = PositionKind::rotary;
    o.key_heads = 1;
  });
  add("fewer heads in some layers", [](TransformerConfig& o) {
    o.heads = 4;
    o.encoder_heads = "1 3";
    o.decoder_heads = "4 2";
    o.cross_heads = "2 1";
  });
  return list;
}

TEST(Transformer, TheBooksModelsHaveTheBooksParameters) {
  const Transformer model({.hidden = 32, .ffn = 64, .layers = 2}, {184, 201}, Rng(1));
  EXPECT_EQ(count_parameters(model), 60937);
  EXPECT_EQ(count_parameters(model.encoder), 22720);
  EXPECT_EQ(count_parameters(model.decoder), 38217);
  EXPECT_EQ(count_parameters(Transformer({.hidden = 256, .ffn = 64, .layers = 2}, {194, 214}, Rng(1))), 1869782);
  bool named = false;
  for (const auto& p : parameters(model)) named |= p.name == "decoder.1.cross.to_q.weight";
  EXPECT_TRUE(named);
}

TEST(Transformer, SaysWhatItConsistsOfAndWhatItsCacheHolds) {
  const Ids source = some_ids(2, 5, 9, 1), lens({2}, {5, 3});
  for (const auto& [name, options] : variants()) {
    expect_layout<Transformer>(options, kWords, name);
    const ModelFacts facts = options.facts();
    const bool linformer = options.kind.kind == AttentionKind::linformer;
    EXPECT_EQ(facts.longest_input, options.positions == PositionKind::learned ? std::optional<int64_t>(6)
                                   : linformer                                ? std::optional<int64_t>(9)
                                                                              : std::nullopt)
        << name;
    const Transformer model(options, kWords, Rng(1));
    Transformer::State state = model.start(source, lens, {});
    int64_t kept = 0, written = 0;
    for (const KeyValues& kv : state.cross) kept += kv.k.numel() + kv.v.numel();
    EXPECT_EQ(kept, facts.source_floats * source.numel()) << name;
    model.step(state, Ids({2}, {1, 2}), {});
    for (const KeyValues& kv : state.self) written += kv.k.size(1) + kv.v.size(1);
    EXPECT_EQ(written, facts.written_floats) << name;
    ASSERT_TRUE(facts.source_maps()) << name;
    EXPECT_EQ(facts.source_maps()->layers, std::ssize(state.cross)) << name;
  }
}

TEST(Transformer, SaysWhatItIsInOneLine) {
  EXPECT_EQ(
      TransformerConfig{}.facts().summary.in(Language::en),
      "transformer, 1 layer, hidden 256, 4 heads, ffn 1024, positions sinusoidal, norm post, attention scaled-dot");
  const TransformerConfig uneven{.hidden = 32,
                                 .ffn = 64,
                                 .heads = 4,
                                 .key_heads = 2,
                                 .layers = 3,
                                 .decoder_layers = 1,
                                 .positions = PositionKind::alibi};
  EXPECT_EQ(uneven.facts().summary.in(Language::en),
            "transformer, 3 + 1 layer, hidden 32, 4 heads (2 of keys), ffn 64, positions alibi, norm post, attention "
            "scaled-dot");
}

TEST(Transformer, LaysOutAModelThatNoMemoryHolds) {
  TransformerConfig options = variants()[0].options;
  options.hidden = options.ffn = 1 << 20;
  const auto layout = options.layout(kWords);
  EXPECT_EQ(layout[0].name, "encoder.embedding.weight");
  EXPECT_EQ(layout[0].shape, (Shape{9, 1 << 20}));
  EXPECT_EQ(zeros({2}).at({1}), 0);  // tensors are allocated again
}

TEST(Transformer, StartsAsTheBooksPyTorchModel) {
  const Transformer model({.hidden = 32, .ffn = 64, .layers = 2, .init = TransformerConfig::Init::book}, {184, 201},
                          Rng(1));
  const auto bounded = [](const Tensor& t, double fan) {
    const float most = max(abs(t)).item(), bound = static_cast<float>(std::sqrt(6 / fan));
    EXPECT_LE(most, bound);
    EXPECT_GT(most, 0.9f * bound);
  };
  bounded(model.encoder.stack.blocks[0].self.to_q.weight, 64);
  bounded(model.decoder.stack.blocks[1].cross->to_out.weight, 64);
  bounded(model.decoder.stack.blocks[0].ffn.as<FeedForward>()->first.weight, 96);
  bounded(model.decoder.output.weight, 233);
  EXPECT_GT(max(abs(model.encoder.embedding.weight)).item(), 2.5f);
  const Transformer english({.hidden = 256, .ffn = 64, .layers = 2, .init = TransformerConfig::Init::pytorch},
                            {194, 214}, Rng(1));
  EXPECT_LE(max(abs(english.encoder.stack.blocks[0].self.to_q.weight)).item(), 1.f / 16);
  EXPECT_GT(max(abs(english.encoder.embedding.weight)).item(), 2.5f);
  const Transformer scaled({.hidden = 32, .ffn = 64, .layers = 2}, {184, 201}, Rng(1));
  bounded(scaled.encoder.stack.blocks[0].self.to_q.weight, 64);
  EXPECT_NEAR(mean(mul(scaled.encoder.embedding.weight, scaled.encoder.embedding.weight)).item(), 1.f / 32, 2e-3f);
}

TEST(Transformer, TheBooksShapes) {
  const TransformerConfig demo{.hidden = 24, .ffn = 48, .heads = 8, .layers = 2, .dropout = 0.5f};
  const TransformerBlock block(demo, Cross::no, Rng(1));
  EXPECT_EQ(block(ones({2, 100, 24}), Mask::valid_lens(Ids({2}, {3, 2})), {}).shape(), Shape({2, 100, 24}));
  const TransformerEncoder encoder(demo, 200, Rng(1));
  const Tensor memory = encoder(some_ids(2, 100, 200, 1), Ids({2}, {3, 2}), {});
  EXPECT_EQ(memory.shape(), Shape({2, 100, 24}));
  const TransformerBlock decoder(demo, Cross::yes, Rng(1));
  EXPECT_EQ(decoder(ones({2, 100, 24}), Mask::causal(), decoder.cross->project(memory, memory),
                    Mask::valid_lens(Ids({2}, {3, 2})), {})
                .shape(),
            Shape({2, 100, 24}));
}

TEST(Transformer, TheCacheGivesTheLogitsOfTheWholePrefix) {
  const Ids source = some_ids(4, 6, 9, 1), target = some_ids(4, 5, 9, 2), lens({4}, {6, 2, 4, 1});
  for (const auto& [name, options] : variants()) {
    const Transformer model(options, kWords, Rng(3));
    const Tensor logits = model.logits(source, lens, target, {});
    Transformer::State state = model.start(source, lens, {});
    for (int64_t t = 0; t < 5; ++t) {
      const Tensor step = model.step(state, column(target, t), {});
      expect_near(step, Array(reshape(slice(logits, 1, t, t + 1), {4, 9})), 1e-6, name);
    }
  }
}

// The book feeds every generated token at position 0: this is not the function that was trained.
TEST(Transformer, TheBooksPredictionForgetsPositions) {
  const Ids source = some_ids(2, 6, 9, 1), target = some_ids(2, 3, 9, 2);
  Transformer model(variants()[0].options, kWords, Rng(3));
  model.decoder.advance_positions = false;
  const Tensor logits = model.logits(source, {}, target, {});
  Transformer::State state = model.start(source, {}, {});
  expect_near(model.step(state, column(target, 0), {}), Array(reshape(slice(logits, 1, 0, 1), {2, 9})), 1e-6,
              "first token");
  const Tensor second = model.step(state, column(target, 1), {}), wanted = reshape(slice(logits, 1, 1, 2), {2, 9});
  EXPECT_GT(max(abs(sub(second, wanted))).item(), 0.01f);
}

TEST(Transformer, NothingLooksAheadAtPaddingOrAtBatchMates) {
  const Ids source = some_ids(5, 6, 9, 1), target = some_ids(5, 4, 9, 2), lens({5}, {6, 2, 4, 1, 3});
  for (const bool training : {false, true})
    for (const auto& [name, options] : variants()) {
      TransformerConfig still = options;
      still.dropout = 0;
      const Transformer model(still, kWords, Rng(3));
      const qkv::Run run{.training = training, .rng = Rng(4)};
      const Tensor all = model.logits(source, lens, target, run);
      for (int64_t b = 0; b < 5; ++b) {
        const Ids alone = source.part(b * 6, {1, 6}).part(0, {1, lens.ptr()[b]});
        for (int64_t t = 1; t <= 4; ++t)
          expect_same(slice(slice(all, 0, b, b + 1), 1, 0, t), model.logits(alone, {}, target.part(b * 4, {1, t}), run),
                      name);
      }
    }
}

TEST(Transformer, ADecoderAloneIsALanguageModel) {
  const TransformerConfig options{.hidden = 8, .ffn = 12, .heads = 2, .layers = 2, .norm = NormPlace::pre};
  const TransformerDecoder model(options, 9, Cross::no, Rng(1));
  for (const auto& p : parameters(model)) EXPECT_EQ(p.name.find("cross"), std::string::npos) << p.name;
  const Ids ids = some_ids(2, 6, 9, 1);
  const Tensor whole = model.features(ids, {}, {});
  expect_same(
      slice(whole, 1, 0, 3),
      model.features(Ids({2, 3}, {ids.ptr()[0], ids.ptr()[1], ids.ptr()[2], ids.ptr()[6], ids.ptr()[7], ids.ptr()[8]}),
                     {}, {}),
      "prefix");
}

// The mask of the target is an argument: with the causal mask no output depends on a later word, without it outputs do.
TEST(Transformer, TheMaskOfTheTargetIsAnArgument) {
  const Transformer model(variants()[0].options, kWords, Rng(4));
  const Ids source({2, 4}, {4, 5, 3, 1, 6, 7, 8, 3}), lens({2}, {3, 4});
  const Ids one({2, 3}, {2, 4, 5, 2, 6, 7}), other({2, 3}, {2, 4, 8, 2, 6, 8});  // the last word differs
  const auto first = [](const Tensor& x) {
    return slice(slice(x, 0, 0, 1), 1, 0, 2);
  };  // two words of the first sentence
  expect_same(first(model.features(source, lens, one, {})), first(model.features(source, lens, other, {})), "causal");
  const Tensor a = first(model.features(source, lens, one, {}, Mask::none())),
               b = first(model.features(source, lens, other, {}, Mask::none()));
  EXPECT_GT(max(abs(sub(a, b))).item(), 1e-4f);
}

// Reading a prompt in one pass gives the same state as reading it token by token, for any lengths, and beams continue
// from there.
TEST(Transformer, APromptReadInOnePassEqualsReadingItTokenByToken) {
  const Ids source = some_ids(4, 6, 9, 1), lens({4}, {6, 2, 4, 1}), ids = some_ids(4, 5, 9, 2),
            prompt_lens({4}, {3, 3, 5, 1});
  for (const auto& [name, options] : variants())
    for (const Cross cross : {Cross::yes, Cross::no}) {
      if (cross == Cross::no && !can_be_causal(options.kind.kind)) continue;  // a decoder alone reads causally
      TransformerConfig o = options;
      o.tied = false;
      o.max_positions = 9;
      const Transformer model(o, kWords, Rng(3));
      const TransformerDecoder alone(o, 9, Cross::no, Rng(5));
      const TransformerDecoder& decoder = cross == Cross::yes ? model.decoder : alone;
      const Tensor states = cross == Cross::yes ? model.encoder(source, lens, {}) : Tensor();
      DecoderState state = decoder.start(4, states, cross == Cross::yes ? lens : Ids());
      const Tensor read = decoder.prefill(state, ids, prompt_lens, {});
      decoder.select(state, std::vector<int32_t>{2, 0, 0, 3, 1});
      const Tensor next = decoder.step(state, Ids({5}, {1, 2, 3, 4, 5}), {}),
                   after = decoder.step(state, Ids({5}, {5, 4, 3, 2, 1}), {});
      const int32_t from[] = {2, 0, 0, 3, 1}, then[] = {1, 2, 3, 4, 5}, last[] = {5, 4, 3, 2, 1};
      for (int64_t i = 0; i < 5; ++i) {
        const int64_t r = from[i];
        const Tensor mine = cross == Cross::yes ? slice(states, 0, r, r + 1) : Tensor();
        DecoderState one = decoder.start(1, mine, cross == Cross::yes ? lens.part(r, {1}) : Ids());
        Tensor logits;
        for (int64_t t = 0; t < prompt_lens.ptr()[r]; ++t) logits = decoder.step(one, ids.part(r * 5 + t, {1}), {});
        expect_near(slice(read, 0, r, r + 1), Array(logits), 1e-6, name);
        expect_near(slice(next, 0, i, i + 1), Array(decoder.step(one, Ids({1}, {then[i]}), {})), 1e-6, name);
        expect_near(slice(after, 0, i, i + 1), Array(decoder.step(one, Ids({1}, {last[i]}), {})), 1e-6, name);
      }
    }
}

TEST(Transformer, GradientsReachEveryParameter) {
  for (auto [name, options] : variants()) {
    options.activation = Activation::gelu;  // differences across the kink of relu are not derivatives
    // A bias of the keys shifts all scores of a row equally, which softmax ignores.
    expect_gradients(Transformer(options, kWords, Rng(3)), 9, 3e-3f, 1e-2, name, "to_k.bias");
  }
}

TEST(Transformer, SelectedRowsGoOnAsTheirParents) {
  for (const auto& [name, options] : variants()) expect_selected_rows_go_on(Transformer(options, kWords, Rng(3)), name);
}

struct Paths : Probe {
  std::vector<std::string> paths;
  std::vector<Shape> shapes;
  void attention(std::string_view path, const Weights& weights) override {
    paths.emplace_back(path);
    shapes.push_back(weights.shape());
  }
};

TEST(Transformer, ThreadsAndProbesChangeNoBitOfAGradient) {
  const Ids source = some_ids(50, 9, 90, 1), target = some_ids(50, 8, 90, 2);
  Ids lens = Ids::empty({50});
  for (int64_t b = 0; b < 50; ++b) lens.mutable_ptr()[b] = static_cast<int32_t>(1 + b * 7 % 9);
  Transformer model({.hidden = 48, .ffn = 96, .layers = 2}, {90, 90}, Rng(3));
  const Parameters all = flatten(model);
  const auto gradient = [&](int count, Probe* probe) {
    set_threads(count);
    GradArena arena = all.grad_arena();
    Tape tape(arena);
    const Tensor y = model.features(source, lens, target, {.training = true, .rng = Rng(4), .probe = probe});
    tape.backward(sum(mul(y, y)));
    return arena.flat().copied();
  };
  const qkv_test::ThreadsScope threads_scope;
  Paths probe;
  const Tensor one = gradient(1, nullptr), three = gradient(3, nullptr), probed = gradient(2, &probe);
  const std::vector<std::string> paths{"encoder.0.self",  "encoder.1.self", "decoder.0.self",
                                       "decoder.0.cross", "decoder.1.self", "decoder.1.cross"};
  EXPECT_EQ(probe.paths, paths);
  EXPECT_EQ(probe.shapes.at(0), Shape({50, 4, 9, 9}));
  EXPECT_EQ(probe.shapes.at(3), Shape({50, 4, 8, 9}));
  expect_same(one, three, "threads");
  expect_same(one, probed, "probe");
}

TEST(Transformer, RecomputedBlocksGiveTheSameGradients) {
  const Ids source = some_ids(8, 6, 9, 1), target = some_ids(8, 5, 9, 2), lens({8}, {6, 2, 4, 1, 3, 5, 6, 6});
  for (auto [name, options] : variants()) {
    std::vector<Tensor> gradients;
    for (const bool recompute : {false, true}) {
      options.recompute = recompute;
      Transformer model(options, kWords, Rng(3));
      const Parameters all = flatten(model);
      GradArena arena = all.grad_arena();
      Paths probe;
      Tape tape(arena);
      const Tensor y = model.features(source, lens, target, {.training = true, .rng = Rng(4), .probe = &probe});
      EXPECT_EQ(tape.length() < 32, recompute) << name << ": " << tape.length();
      tape.backward(
          linear_cross_entropy(y, model.decoder.output.weight, model.decoder.output.bias, target, {.ignore_id = 1}));
      gradients.push_back(arena.flat().copied());
      EXPECT_EQ(probe.paths.size(), static_cast<size_t>(options.layers + 2 * options.decoder_depth())) << name;
    }
    // Gradients of the encoder's outputs are added in a different order.
    expect_near(gradients[1], Array(gradients[0]), 1e-6, name);
  }
}

TEST(Transformer, AfterWarmUpATrainingStepCallsNoOperatorNew) {
  const Ids source = some_ids(8, 6, 9, 1), target = some_ids(8, 5, 9, 2), lens({8}, {6, 2, 4, 1, 3, 5, 6, 6});
  for (const auto& [name, options] : variants()) {
    if (options.attention != ScorerKind::scaled_dot || options.kind.kind != AttentionKind::exact) continue;
    Transformer model(options, kWords, Rng(3));
    const Parameters all = flatten(model);
    GradArena arena = all.grad_arena();
    const auto step = [&] {
      Tape tape(arena);
      const Tensor y = model.features(source, lens, target, {.training = true, .rng = Rng(4)});
      tape.backward(
          linear_cross_entropy(y, model.decoder.output.weight, model.decoder.output.bias, target, {.ignore_id = 1}));
    };
    for (int i = 0; i < 5; ++i) step();
    const int64_t news = operator_new_calls(), misses = Pool::of_thread().misses();
    for (int i = 0; i < 5; ++i) step();
    EXPECT_EQ(operator_new_calls(), news) << name;
    EXPECT_EQ(Pool::of_thread().misses(), misses) << name;
  }
}

TEST(Transformer, ErrorsSayWhatDoesNotFit) {
  TransformerConfig options{.hidden = 10, .ffn = 64, .heads = 4, .layers = 2};
  constexpr VocabularySizes words{9, 7};
  expect_error([&] { Transformer(options, words, Rng(1)); }, "[transformer] a width of 10 is not divisible by 4 heads");
  options.heads = 2;
  options.tied = true;
  expect_error([&] { Transformer(options, words, Rng(1)); },
               "[transformer] tied embeddings need one vocabulary, got 9 and 7 tokens");
  options.tied = false;
  options.positions = PositionKind::learned;
  options.max_positions = 4;
  const Transformer model(options, words, Rng(1));
  expect_error([&] { model.logits(some_ids(2, 5, 9, 1), {}, some_ids(2, 3, 7, 1), {}); },
               "[positions] position 4 is past the learned table of 4 positions");
  expect_error([&] { model.logits(some_ids(2, 3, 9, 1), {}, some_ids(3, 3, 7, 1), {}); },
               "[transformer] source and target differ in rows: (2, 3) and (3, 3)");
  Transformer::State state = model.start(some_ids(2, 3, 9, 1), {}, {});
  expect_error(
      [&] {
        model.step(state, Ids({3}, {1, 2, 3}), {});
      },
      "[transformer] the cache has 2 rows, got tokens of shape (3,)");
  expect_error([&] { model.select(state, std::vector<int32_t>{2}); }, "[transformer] row 2 is not in 0 to 1");
  options.decoder_layers = 1;
  const Transformer other(options, words, Rng(1));
  expect_error(
      [&] {
        other.step(state, Ids({2}, {1, 2}), {});
      },
      "[transformer] the cache is from a model with 2 decoder blocks, but this one has 1");
  options.decoder_layers = 2;
  const Transformer wider(options, {9, 8}, Rng(1));
  expect_error(
      [&] {
        wider.step(state, Ids({2}, {1, 2}), {});
      },
      "[transformer] the cache is from a model of width 10 and 7 target tokens, but this one has 10 and 8");
  options.key_heads = 1;
  const Transformer shared(options, words, Rng(1));
  expect_error(
      [&] {
        shared.step(state, Ids({2}, {1, 2}), {});
      },
      "[transformer] the cache was started by another model, or by this one before its weights moved");
  expect_error(
      [&] {
        model.start(some_ids(2, 3, 9, 1), Ids({3}, {1, 2, 3}), {});
      },
      "[transformer] lengths have shape (3,) for source (2, 3)");
  for (int t = 0; t < 4; ++t) model.step(state, Ids({2}, {1, 2}), {});
  expect_error(
      [&] {
        model.step(state, Ids({2}, {1, 2}), {});
      },
      "[positions] position 4 is past the learned table of 4 positions");
}

}  // namespace
}  // namespace qkv::tests
