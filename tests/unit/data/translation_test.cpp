// Batches of sentence pairs: arrays, order, cuts.
#include "qkv/data/translation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "qkv/core/rng.h"
#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

using IdList = std::vector<int32_t>;

IdList values(const Ids& ids) { return {ids.data().begin(), ids.data().end()}; }

// Pairs of many lengths; the source's first id is the index of the pair.
std::vector<IdPair> many(int64_t count) {
  const Rng rng(5);
  std::vector<IdPair> pairs;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t at = static_cast<uint64_t>(i);
    IdPair pair{IdList(1 + rng.below(12, 2 * at), 7), IdList(1 + rng.below(12, 2 * at + 1), 8)};
    pair.source.insert(pair.source.begin(), static_cast<int32_t>(100 + i));
    pair.source.push_back(3);
    pair.target.push_back(3);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

IdList numbers(const TranslationBatches& batches, int64_t epoch) {
  IdList out;
  for (int64_t b = 0; b < batches.batches(); ++b) {
    const TranslationBatch batch = batches.batch(epoch, b);
    for (int64_t row = 0; row < batch.source.size(0); ++row)
      out.push_back(batch.source.data()[static_cast<size_t>(row * batch.source.size(1))]);
  }
  return out;
}

}  // namespace

TEST(TranslationBatches, ArraysAreTrimmedToTheLongest) {
  const TranslationBatches batches({{{5, 3}, {6, 7, 8, 3}}, {{5, 6, 3}, {9, 3}}}, 1, 11, 2,
                                   {.rows = 2, .shuffle = false});
  ASSERT_EQ(batches.batches(), 1);
  const TranslationBatch b = batches.batch(0, 0);
  EXPECT_EQ(b.source.shape(), Shape({2, 3}));
  EXPECT_EQ(values(b.source), (IdList{5, 3, 1, 5, 6, 3}));
  EXPECT_EQ(values(b.source_lens), (IdList{2, 3}));
  EXPECT_EQ(b.target_out.shape(), Shape({2, 4}));
  EXPECT_EQ(values(b.target_out), (IdList{6, 7, 8, 3, 9, 3, 11, 11}));
  EXPECT_EQ(values(b.target_in), (IdList{2, 6, 7, 8, 2, 9, 3, 11}));
  EXPECT_EQ(values(b.target_lens), (IdList{4, 2}));
}

TEST(TranslationBatches, FixedStepsPadAndCutAsTheBookDoes) {
  const TranslationBatches batches({{{5, 3}, {6, 7, 8, 3}}}, 1, 1, 2, {.fixed_steps = 3});
  const TranslationBatch b = batches.batch(4, 0);
  EXPECT_EQ(values(b.source), (IdList{5, 3, 1}));
  EXPECT_EQ(values(b.target_out), (IdList{6, 7, 8}));  // its <eos> is lost
  EXPECT_EQ(values(b.target_in), (IdList{2, 6, 7}));
  EXPECT_EQ(values(b.target_lens), (IdList{3}));
}

TEST(TranslationBatches, AnEpochHasEveryPairOnce) {
  for (const BatchOptions options :
       {BatchOptions{.rows = 64}, BatchOptions{.rows = 64, .by_length = true}, BatchOptions{.tokens = 300}}) {
    const TranslationBatches batches(many(601), 1, 1, 2, options);
    for (const int64_t epoch : {0, 1, 17}) {
      IdList seen = numbers(batches, epoch);
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(seen.size(), 601u);
      for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int32_t>(100 + i));
    }
  }
  EXPECT_EQ(TranslationBatches(many(601), 1, 1, 2, {.rows = 64}).batches(), 10);
  EXPECT_EQ(TranslationBatches({}, 1, 1, 2, {}).batches(), 0);
}

TEST(TranslationBatches, ABatchDependsOnSeedEpochAndIndexAlone) {
  const BatchOptions options{.rows = 50, .by_length = true, .seed = 9};
  const TranslationBatches a(many(300), 1, 1, 2, options), b(many(300), 1, 1, 2, options);
  const IdList later = values(a.batch(3, 2).source);
  numbers(b, 0);
  EXPECT_EQ(values(b.batch(3, 2).source), later);
  EXPECT_EQ(numbers(a, 1), numbers(b, 1));
  EXPECT_NE(numbers(a, 1), numbers(a, 2));
  EXPECT_NE(numbers(a, 1),
            numbers(TranslationBatches(many(300), 1, 1, 2, {.rows = 50, .by_length = true, .seed = 10}), 1));
  const TranslationBatches still(many(300), 1, 1, 2, {.rows = 50, .shuffle = false});
  EXPECT_EQ(numbers(still, 0), numbers(still, 5));
  EXPECT_TRUE(std::ranges::is_sorted(numbers(still, 0)));
}

TEST(TranslationBatches, ThreadsMayAskForDifferentEpochs) {
  const TranslationBatches batches(many(200), 1, 1, 2, {.rows = 32});
  const IdList first = numbers(batches, 0), second = numbers(batches, 1);
  IdList from_thread;
  std::thread other([&] { from_thread = numbers(batches, 1); });
  const IdList here = numbers(batches, 0);
  other.join();
  EXPECT_EQ(here, first);
  EXPECT_EQ(from_thread, second);
}

TEST(TranslationBatches, SortingByLengthSavesPadding) {
  const auto padded = [](const BatchOptions& options) {
    const TranslationBatches batches(many(601), 1, 1, 2, options);
    int64_t total = 0;
    for (int64_t b = 0; b < batches.batches(); ++b) {
      const TranslationBatch batch = batches.batch(0, b);
      total += batch.source.numel() + batch.target_out.numel();
    }
    return total;
  };
  EXPECT_LT(padded({.rows = 32, .by_length = true}), padded({.rows = 32}));
}

TEST(TranslationBatches, ATokenBudgetHoldsAndEveryEpochHasTheSameNumberOfBatches) {
  std::vector<IdPair> pairs = many(400);
  pairs[7].target = IdList(500, 8);  // longer than the budget: alone
  const TranslationBatches batches(pairs, 1, 1, 2, {.tokens = 200, .seed = 1});
  for (const int64_t epoch : {0, 1, 2}) {
    std::multiset<int64_t> sizes;
    for (int64_t b = 0; b < batches.batches(); ++b) {
      const TranslationBatch batch = batches.batch(epoch, b);
      const int64_t rows = batch.source.size(0), steps = std::max(batch.source.size(1), batch.target_out.size(1));
      EXPECT_TRUE(rows * steps <= 200 || (rows == 1 && steps == 500)) << rows << " x " << steps;
      sizes.insert(rows);
    }
    EXPECT_EQ(static_cast<int64_t>(sizes.size()), batches.batches());
    EXPECT_GT(*sizes.rbegin(), 15);  // the budget is used
  }
}

TEST(TranslationBatches, RefusesWhatMakesNoSense) {
  const auto refused = [](std::vector<IdPair> pairs, const BatchOptions& options) {
    return error_of([&] { TranslationBatches(pairs, 1, 1, 2, options); });
  };
  EXPECT_EQ(refused({}, {.rows = 0}), "[batches] rows is 0, expected at least 1");
  EXPECT_EQ(refused({}, {.tokens = -1}), "[batches] tokens is -1, expected 0 (cut by rows) or more");
  EXPECT_EQ(refused({}, {.fixed_steps = -1}), "[batches] fixed_steps is -1, expected 0 (as long as needed) or more");
  EXPECT_EQ(refused({{{3}, {3}}, {{3}, {}}}, {}), "[batches] pair 1 has a side without <eos>");
  EXPECT_EQ(error_of([] { TranslationBatches(many(3), 1, 1, 2, {}).batch(0, 1); }),
            "[batches] no batch 1 of epoch 0, there are 1");
  EXPECT_EQ(error_of([] { TranslationBatches(many(3), 1, 1, -1, {}); }),
            "[batches] <pad> and <bos> are 1, 1 and -1, expected 0 or more");
}

TEST(EncodePairs, BothSidesEndWithTheirEos) {
  const Tokenizer source = Tokenizer::words(Vocabulary::build({{"go", "."}}, 1), WordRule::book);
  const Tokenizer target = Tokenizer::words(Vocabulary::build({{"va", "!", "<eos>"}}, 1, Edition::en), WordRule::book);
  const std::vector<IdPair> pairs = encode_pairs({{"Go.", ""}, {"Va !", "Va"}}, source, target);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].source, (IdList{4, 5, 3}));
  EXPECT_EQ(pairs[0].target, (IdList{4, 0, 1}));  // ! <eos> <pad> <unk> va
  EXPECT_EQ(pairs[1].source, (IdList{3}));
}
