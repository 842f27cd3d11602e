// Several batches in one update: the gradient of all their tokens.
#include "qkv/tensor/pool.h"
#include "support/near.h"
#include "unit/tasks/translation_fixture.h"

namespace qkv {
namespace {

TEST_F(TranslationRunTest, FourBatchesOf16PairsAreOneOf64) {
  // Sentences of different lengths, so that batches have different counts of tokens.
  std::ofstream more(pairs());
  for (int i = 0; i < 128; ++i) {
    for (int k = 0; k <= i % 7; ++k) more << (i + k) % 6 << ' ';
    more << "9\t";
    for (int k = 0; k <= i % 5; ++k) more << 'w' << (i * k) % 6 << ' ';
    more << "z\n";
  }
  more.close();
  const auto trained = [&](LossUnit loss, int64_t rows, int64_t accumulate, double rate = 0.01) {
    TranslationConfig c = config(2);
    c.data.valid_share = 0;
    c.data.min_count = 1;
    c.seq2seq().dropout = 0;
    c.training.schedule = ScheduleKind::cosine;
    c.training.clip = 0;
    c.book.loss = loss;
    c.training.batch_rows = rows;
    c.training.accumulate = accumulate;
    c.training.rate = rate;
    TranslationRun run(c, "");
    const FitResult result = run.train();
    EXPECT_EQ(result.progress.steps, 2 * (128 / (rows * accumulate)));
    return std::pair{weights(run), result.progress.epoch_loss};
  };
  for (const LossUnit loss : {LossUnit::token, LossUnit::book}) {
    const auto [whole, whole_loss] = trained(loss, 64, 1);
    const auto [parts, parts_loss] = trained(loss, 16, 4);
    const auto [start, start_loss] = trained(loss, 64, 1, 0);
    ASSERT_EQ(whole.size(), parts.size());
    double worst = 0, moved = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      worst = std::max(worst, std::abs(double{whole[i]} - parts[i]));
      moved = std::max(moved, std::abs(double{whole[i]} - start[i]));
    }
    EXPECT_LT(worst, 1e-4) << name_of(loss);  // Adam divides by the root of small squares: rounding grows with 1 / |g|
    EXPECT_GT(moved, 1e-2) << name_of(loss);
    EXPECT_NEAR(whole_loss, parts_loss, 1e-6 * whole_loss) << name_of(loss);
  }
}

TEST_F(TranslationRunTest, AnAccumulatedGradientIsThatOfAllItsTokens) {
  for (const LossUnit loss : {LossUnit::token, LossUnit::book})
    for (const bool mask : {true, false}) {
      TranslationConfig c = config();
      c.data.valid_share = 0;
      c.seq2seq().dropout = 0;
      c.book.loss = loss;
      c.book.mask_loss = mask;
      TranslationRun run(c, "");
      const auto& text = run.text();
      const auto pairs_of = encode_pairs(text.train, text.tokenizers.source, text.tokenizers.target);
      std::vector<IdPair> ids(pairs_of.begin(), pairs_of.begin() + 64);
      for (size_t i = 0; i < ids.size(); i += 3)
        ids[i].target.erase(ids[i].target.begin());  // different counts in different batches
      for (size_t i = 0; i < 16; ++i) ids[i].target.resize(1);
      const auto gradient = [&](int64_t rows) {
        c.training.batch_rows = rows;
        const TranslationTask task(run.model(), c, ids, {}, text.tokenizers);
        std::vector<TranslationBatch> all;
        for (int64_t b = 0; b < task.batches(); ++b) all.push_back(task.batch(0, b));
        Shards shards(run.model().parameters());
        detail::gradients(shards, task, all, qkv::Run{.training = true});
        return shards.gradient().copied();
      };
      const Tensor whole = gradient(64), parts = gradient(16);
      qkv_test::expect_near_largest(parts, whole, 1e-6, qkv::text(loss, mask ? ", masked" : ""));
    }
}

}  // namespace
}  // namespace qkv
