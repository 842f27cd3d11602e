// Removing heads gives the same function as switching them off, in smaller matrices.
#include "qkv/models/head_pruning.h"

#include <gtest/gtest.h>

#include "qkv/attention/edits.h"
#include "qkv/models/transformer.h"
#include "unit/models/model_checks.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

constexpr VocabularySizes kWords{9, 9};

Transformer smaller_of(Transformer& model, const KeptUnits& kept) {
  const Parameters before = flatten(model);
  Transformer out(pruned(model.config, kept), kWords, Rng(9));
  const Parameters after = flatten(out);
  const std::map<std::string, Tensor> weights = pruned(before, model.config, kept);
  for (size_t i = 0; i < after.entries().size(); ++i) {
    const Tensor& from = weights.at(after.entries()[i].name);
    EXPECT_EQ(from.shape(), after.entries()[i].shape) << after.entries()[i].name;
    std::copy_n(from.ptr(), from.numel(), after.values(i).mutable_ptr());
  }
  EXPECT_LT(after.count(), before.count());
  return out;
}

TEST(HeadPruning, ASmallerModelIsTheModelWithTheseHeadsOff) {
  const Ids source = some_ids(3, 6, 9, 1), target = some_ids(3, 5, 9, 2), lens({3}, {6, 2, 4});
  for (const PositionKind positions : {PositionKind::sinusoidal, PositionKind::relative, PositionKind::rotary})
    for (const int64_t shared : {1, 2}) {
      Transformer model({.hidden = 16,
                         .ffn = 12,
                         .heads = 4,
                         .key_heads = 4 / shared,
                         .layers = 2,
                         .positions = positions,
                         .bias = true},
                        kWords, Rng(3));
      const std::vector<PrunableAttention> places = prunable_attentions(model.config);
      ASSERT_EQ(places.size(), 6u);
      KeptUnits kept(6);
      AttentionEdits off;
      for (size_t i = 0; i < places.size(); ++i)
        for (int64_t u = 0; u < places[i].units; ++u) {
          if ((u + static_cast<int64_t>(i)) % 2 == 0) {
            kept[i].push_back(u);
            continue;
          }
          for (int64_t h = u * shared; h < (u + 1) * shared; ++h)
            off.push_back({.path = places[i].path, .what = EditKind::off, .head = h});
        }
      Transformer small = smaller_of(model, kept);
      EditProbe probe(off);
      const std::string name = std::string(name_of(positions)) + ", " + std::to_string(shared);
      expect_near(small.logits(source, lens, target, {}),
                  Array(model.logits(source, lens, target, qkv::Run{.probe = &probe})), 1e-5, name);
      // And it decodes.
      Transformer::State state = small.start(source, lens, {});
      const Tensor logits = small.logits(source, lens, target, {});
      for (int64_t t = 0; t < 5; ++t)
        expect_near(small.step(state, column(target, t), {}), Array(reshape(slice(logits, 1, t, t + 1), {3, 9})), 1e-6,
                    name);
    }
}

TEST(HeadPruning, TheMostImportantStayAndEveryAttentionKeepsOne) {
  const KeptUnits kept = most_important({{5, 6, 7}, {0.1, 0.2, 0.3}, {8, 1, 9}}, 0.5);
  EXPECT_EQ(kept, (KeptUnits{{1, 2}, {2}, {0, 2}}));  // 9 times 0.5 is 4.5: five stay
  expect_error(
      [] {
        most_important({{1, 2}, {1, 2}, {1, 2}}, 0.3);
      },
      "keeping 0.3 of 6 heads leaves 2, but each of the 3 attentions needs at least one");
  const TransformerConfig config{.hidden = 16, .ffn = 12, .heads = 2, .layers = 1};
  expect_error(
      [&] {
        pruned(config, {{0}, {}, {1}});
      },
      "all 2 heads of decoder.0.self would be removed: an attention needs at least one");
  TransformerConfig alibi = config;
  alibi.positions = PositionKind::alibi;
  expect_error(
      [&] {
        pruned(alibi, {{0}, {1}, {1}});
      },
      "model.positions alibi gives every head a slope by its number: heads cannot be removed");
}

TEST(HeadPruning, CountsAreWrittenPerLayer) {
  TransformerConfig config{.hidden = 16, .ffn = 12, .heads = 4, .layers = 2};
  const TransformerConfig out = pruned(config, {{0}, {1, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {2}, {0, 1, 3}});
  EXPECT_EQ(out.encoder_heads, "1 2");
  EXPECT_EQ(out.decoder_heads, "");
  EXPECT_EQ(out.cross_heads, "1 3");
  EXPECT_EQ(out.heads_of(AttentionPart::cross, 1), 3);
  EXPECT_EQ(out.facts().source_maps()->heads, 3);
  EXPECT_EQ(out.facts().source_maps()->heads_of(0), 1);
  out.check();
}

}  // namespace
}  // namespace qkv::tests
