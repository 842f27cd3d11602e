// Several ranks train to the bits of one: the plan of an update, the sum of gradients, and fit.
#include <gtest/gtest.h>

#include <map>

#include "programs/toy_task.h"
#include "qkv/train/fit.h"
#include "qkv/train/gradient_exchange.h"
#include "qkv/train/tree_sum.h"
#include "support/files.h"
#include "unit/ranks/thread_ranks.h"

namespace qkv {
namespace {

std::vector<float> copied(const Tensor& x) { return {x.data().begin(), x.data().end()}; }

TEST(UpdatePlan, EveryLeafBelongsToOneRankAndTheTreeIsThatOfOneProcess) {
  for (const std::vector<int64_t>& shards : std::vector<std::vector<int64_t>>{
           {1}, {2}, {8}, {7}, {13}, {1, 1, 1}, {4, 4}, {3, 5, 2}, {0, 3}, {1, 0, 2, 8, 1, 1, 1}})
    for (const int ranks : {1, 2, 3, 4, 5, 8, 16}) {
      const UpdatePlan plan(shards, ranks);
      int64_t next = 0;
      for (const UpdatePlan::Piece& piece : plan.pieces()) {
        EXPECT_EQ(piece.begin, next);
        next = piece.end;
      }
      EXPECT_EQ(next, plan.leaves());
      for (int64_t b = 0; b < plan.batches(); ++b) {
        int64_t shard = 0;
        for (int r = 0; r < ranks; ++r) {
          const auto [begin, end] = plan.shards_of(r, b);
          if (begin == end) continue;
          EXPECT_EQ(begin, shard);
          shard = end;
        }
        EXPECT_EQ(shard, plan.batch_begin(b + 1) - plan.batch_begin(b));
      }
      // Text as a sum that shows its brackets.
      std::vector<std::string> sums;
      const auto leaf = [](int64_t i) { return std::to_string(i); };
      const auto add = [](const std::string& a, const std::string& b) { return "(" + a + "+" + b + ")"; };
      const auto batch = [&](int64_t b) { return tree_sum(plan.batch_begin(b), plan.batch_begin(b + 1), leaf, add); };
      for (const UpdatePlan::Piece& piece : plan.pieces()) {
        int64_t first = 0, last = 0;
        while (plan.batch_begin(first) < piece.begin) ++first;
        while (plan.batch_begin(last) < piece.end) ++last;
        const bool whole =
            plan.batch_begin(first) == piece.begin && plan.batch_begin(last) == piece.end && first < last;
        sums.push_back(whole ? tree_sum(first, last, batch, add) : tree_sum(piece.begin, piece.end, leaf, add));
      }
      for (const auto [to, from] : plan.joins())
        sums[static_cast<size_t>(to)] = add(sums[static_cast<size_t>(to)], sums[static_cast<size_t>(from)]);
      EXPECT_EQ(sums[0], tree_sum(0, plan.batches(), batch, add)) << ranks << " ranks";
    }
  EXPECT_EQ(UpdatePlan({8}, 4).pieces().size(), 4u) << "ranks that divide the shards exchange one piece each";
  EXPECT_EQ(UpdatePlan({8}, 3).pieces().size(), 5u);
}

// All numbers of leaves, ranks and floats give the sum of the tree, and exactly the bytes of theory.
TEST(GradientExchange, SumsInTheOrderOfTheTree) {
  for (const int64_t floats : {16, 4000, 300'000})
    for (const int64_t leaves : {1, 3, 8})
      for (const int ranks_count : {2, 3, 4, 8}) {
        const UpdatePlan plan({leaves}, ranks_count);
        std::vector<std::vector<float>> values;
        for (int64_t i = 0; i < leaves; ++i) values.push_back(copied(normal({floats}, Rng(static_cast<uint64_t>(i)))));
        const auto add = [](std::vector<float> a, const std::vector<float>& b) {
          for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
          return a;
        };
        const auto leaf = [&](int64_t i) { return values[static_cast<size_t>(i)]; };
        const std::vector<float> wanted = tree_sum(0, leaves, leaf, add);
        tests::on_ranks(ranks_count, [&](Ranks& ranks) {
          GradientExchange exchange(ranks, floats);
          for (int round = 0; round < 2; ++round) {
            std::vector<std::vector<float>> own;
            const auto [first, last] = plan.pieces_of(ranks.rank());
            for (int64_t i = first; i < last; ++i) {
              const UpdatePlan::Piece& piece = plan.pieces()[static_cast<size_t>(i)];
              own.push_back(tree_sum(piece.begin, piece.end, leaf, add));
            }
            std::vector<float*> pieces;
            for (auto& piece : own) pieces.push_back(piece.data());
            std::vector<float> spare(static_cast<size_t>(floats));
            float* result = pieces.empty() ? spare.data() : pieces[0];
            const uint64_t before = ranks.bytes_sent();
            exchange.begin(plan, pieces, result);
            // In parts, from the end, as a backward pass would.
            for (int64_t end = floats; end > 0 && !pieces.empty(); end -= 1000)
              exchange.ready(std::max<int64_t>(0, end - 1000), end);
            exchange.wait();
            EXPECT_EQ(ranks.bytes_sent() - before, 4u * static_cast<uint64_t>(exchange.floats_sent(plan)));
            EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), result))
                << floats << " floats, " << leaves << " leaves, rank " << ranks.rank() << " of " << ranks_count;
          }
          if (leaves == ranks_count && floats % (16 * ranks_count) == 0) {
            EXPECT_EQ(exchange.floats_sent(plan), 2 * floats * (ranks_count - 1) / ranks_count)
                << "the lower bound of an all-reduce";
          }
        });
      }
}

struct Fitted {
  std::vector<float> weights;
  std::vector<double> losses, norms;
  bool operator==(const Fitted&) const = default;
};

struct Steps : Observer {
  void step(const Progress& p) override {
    losses.push_back(p.batch_loss);
    norms.push_back(p.gradient_norm);
  }
  std::vector<double> losses, norms;
};

Fitted fitted(Ranks* ranks, int64_t shards, int64_t accumulate, int64_t steps, const std::string& checkpoint = "") {
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  Adam adam;
  Steps seen;
  Observer* observers[] = {&seen};
  fit(all, adam,
      {.epochs = 3,
       .steps = steps,
       .accumulate = accumulate,
       .shards = ShardPolicy::number(shards),
       .checkpoint = ranks && ranks->rank() > 0 ? "" : checkpoint,
       .checkpoint_every = 1,
       .ranks = ranks},
      tests::ToyTask{model}, observers);
  return {copied(all.flat()), seen.losses, seen.norms};
}

TEST(FitOnRanks, EndsWithTheBitsOfOneProcess) {
  for (const int64_t shards : {1, 2, 3, 8})
    for (const int64_t accumulate : {1, 2, 3}) {
      const Fitted alone = fitted(nullptr, shards, accumulate, 100);
      for (const int size : {1, 2, 3, 4, 8})
        tests::on_ranks(size, [&](Ranks& ranks) {
          EXPECT_EQ(fitted(&ranks, shards, accumulate, 100), alone)
              << shards << " shards, " << accumulate << " batches per update, rank " << ranks.rank() << " of " << size;
        });
    }
}

TEST(FitOnRanks, AStoppedRunContinuesWithAnotherNumberOfRanks) {
  const Fitted alone = fitted(nullptr, 4, 1, 100);
  const qkv_test::TempFolder folder;
  const std::string file = folder / "last.safetensors";
  for (const int size : {1, 4, 2, 3, 8}) {
    const int64_t steps = size == 1 ? 2 : size == 4 ? 5 : size == 2 ? 7 : size == 3 ? 11 : 100;
    tests::on_ranks(size, [&](Ranks& ranks) {
      const Fitted part = fitted(&ranks, 4, 1, steps, file);
      if (steps == 100) {
        EXPECT_EQ(part.weights, alone.weights) << "rank " << ranks.rank();
      }
    });
  }
}

TEST(FitOnRanks, AllStopAfterTheUpdateInWhichOneWasAskedTo) {
  std::vector<int64_t> steps(3);
  tests::on_ranks(3, [&](Ranks& ranks) {
    tests::ToyModel model(Rng(1));
    const Parameters all = flatten(model);
    Adam adam;
    std::atomic<bool> stop = false;
    const FitResult result = fit(all, adam,
                                 {.epochs = 3,
                                  .ranks = &ranks,
                                  .stop = &stop,
                                  .on_step = [&](const Progress& p) { stop = p.step == 4 && ranks.rank() == 2; }},
                                 tests::ToyTask{model});
    EXPECT_TRUE(result.interrupted);
    steps[static_cast<size_t>(ranks.rank())] = result.progress.step;
  });
  EXPECT_EQ(steps, (std::vector<int64_t>{5, 5, 5}));
}

// A loss that fails in the update after the fourth.
struct FailingTask : tests::ToyTask {
  int rank = 0;
  const int64_t* step = nullptr;
  Loss loss(const tests::ToyBatch& b, int64_t begin, int64_t end, const Run& run) const {
    const Loss out = ToyTask::loss(b, begin, end, run);
    if (rank == 1 && *step == 4) throw Error(verbatim("out of memory"));
    return out;
  }
};

// Its own gradient is under way, and those of the others arrive, while the failure is told.
TEST(FitOnRanks, AFailureInTheMiddleOfAStepReachesAllRanks) {
  for (const int64_t shards : {3, 8}) {
    std::vector<std::string> met(3);
    tests::on_ranks(3, [&](Ranks& ranks) {
      tests::ToyModel model(Rng(1));
      const Parameters all = flatten(model);
      Adam adam;
      int64_t step = 0;
      FailingTask task{{model}, ranks.rank(), &step};
      std::string& said = met[static_cast<size_t>(ranks.rank())];
      try {
        fit(all, adam,
            {.epochs = 3,
             .shards = ShardPolicy::number(shards),
             .ranks = &ranks,
             .on_step = [&](const Progress& p) { step = p.step; }},
            task);
        said = "nothing";
      } catch (const RankFailed& e) {
        said = e.what();
      } catch (const Error& e) {
        said = ranks.fail(e.what()) ? e.what() : "nothing to say";
      }
    });
    EXPECT_EQ(met, (std::vector<std::string>{"rank 1 on thread1 has failed: out of memory", "out of memory",
                                             "rank 1 on thread1 has failed: out of memory"}));
  }
}

// Counts what a listener is told.
struct Told : GradListener {
  void ready(int64_t begin, int64_t end) override {
    for (int64_t i = begin; i < end; ++i) ++times[i];
    calls.push_back(begin);
  }
  std::map<int64_t, int> times;
  std::vector<int64_t> calls;
};

TEST(Tape, TellsWhichGradientsAreReadyWhileItComputesTheOthers) {
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  GradArena arena = all.grad_arena();
  Told told;
  const tests::ToyTask task{model};
  {
    Tape tape(arena, &told);
    const Loss loss = task.loss(task.batch(0, 0), 0, 4, qkv::Run{});
    tape.backward(loss.sum);
  }
  EXPECT_EQ(std::ssize(told.times), all.flat().numel()) << "every float is reported";
  for (const auto& [i, times] : told.times) EXPECT_EQ(times, 1) << i;
  EXPECT_GT(told.calls.size(), 1u);
}

}  // namespace
}  // namespace qkv
