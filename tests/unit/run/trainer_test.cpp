// The training of a run with a task other than translation: what it writes, validates, keeps and resumes.
#include "qkv/run/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "programs/toy_task.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/npz.h"
#include "qkv/io/safetensors.h"
#include "qkv/run/training_plan.h"
#include "support/files.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  TrainResult result;
  std::vector<float> weights;
  std::vector<double> valid_losses;
  std::vector<std::vector<float>> validated;  // the weights that the loss was measured with
};

struct Toy {
  TrainingConfig config{.epochs = 4, .rate = 0.01, .seed = 3, .checkpoint_seconds = 0};
  int64_t fingerprint = 7;
  std::function<double(int64_t epoch)> loss = {};  // of validation; empty: none
  int64_t stop_after = -1;                         // step
};

Outcome train(const std::string& path, const Toy& toy) {
  struct StopAfter : Observer {
    void step(const Progress& p) override { stop = stop || p.step == last; }
    void epoch(const Progress& p) override {
      if (p.valid_loss) losses.push_back(*p.valid_loss);
    }
    int64_t last = 0;
    std::atomic<bool> stop = false;
    std::vector<double> losses;
  } observer;
  observer.last = toy.stop_after;
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  const auto weights = [&] { return std::vector<float>(all.flat().data().begin(), all.flat().data().end()); };
  RunFolder folder(path, ExistingRun::resume, {"mark.txt"});
  if (!path.empty()) folder.begin([&] { write_file(folder.file("mark.txt"), ""); }, "first");
  Outcome out;
  TrainedModel trained{.parameters = all,
                       .save =
                           [&](const std::string& to) {
                             write_safetensors(to, {{"all", all.flat()}});
                           },
                       .data_fingerprint = toy.fingerprint,
                       .attention =
                           [] {
                             return AttentionSnapshots::Maps{{"map", Array(Tensor({1, 2}, {0.5f, 0.5f}))}};
                           }};
  if (toy.loss)
    trained.validate = [&] {
      out.validated.push_back(weights());
      return toy.loss(std::ssize(out.validated));
    };
  Trainer trainer(toy.config, folder, "second", std::move(trained));
  Observer* observers[] = {&observer};
  out.result = trainer.train(tests::ToyTask{model}, observers, &observer.stop);
  out.weights = weights();
  out.valid_losses = observer.losses;
  return out;
}

TEST(Trainer, FillsTheFolder) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "run";
  Toy toy;
  toy.config.attention_every = 2;
  toy.loss = [](int64_t epoch) { return epoch == 2 ? 1.0 : 2.0; };
  const Outcome out = train(path, toy);
  EXPECT_EQ(out.result.kept, Kept::best);
  EXPECT_EQ(out.result.kept_loss, 1.0);
  EXPECT_EQ(out.valid_losses, (std::vector<double>{2, 1, 2, 2}));
  EXPECT_EQ(out.weights, out.validated[1]) << "the best weights are the model";
  for (const char* name : {"model.safetensors", "checkpoints/best.safetensors"}) {
    const Tensor saved = SafetensorsFile(path + "/" + name).tensor("all");
    EXPECT_TRUE(std::equal(out.weights.begin(), out.weights.end(), saved.ptr())) << name;
  }
  EXPECT_EQ(qkv_test::file_bytes(path + "/config.yaml"), "second") << "written again before the first checkpoint";
  EXPECT_EQ(read_npz(path + "/attention/epoch_0002.npz").size(), 1u);
  EXPECT_FALSE(fs::exists(path + "/attention/epoch_0001.npz"));
  const std::string log = qkv_test::file_bytes(path + "/train.log"),
                    metrics = qkv_test::file_bytes(path + "/metrics.jsonl");
  EXPECT_EQ(log.find("started at step 0\nepoch 1/4 step 5/20 loss "), 0u) << log;
  EXPECT_NE(log.find("finished at step 20 of 20\n"), std::string::npos) << log;
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 4);
}

TEST(Trainer, EndsAfterItsPatienceAndResumesWithMore) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "run";
  Toy toy;
  toy.config.epochs = 9;
  toy.config.patience = 2;
  toy.loss = [](int64_t epoch) { return static_cast<double>(epoch); };
  const Outcome out = train(path, toy);
  EXPECT_TRUE(out.result.ended_early);
  EXPECT_EQ(out.result.progress.epoch, 3);
  EXPECT_EQ(train(path, toy).result.progress.steps_here, 0);
  toy.config.patience = 4;
  toy.loss = [](int64_t epoch) { return static_cast<double>(epoch + 3); };
  EXPECT_EQ(train(path, toy).result.progress.epoch, 5);
}

TEST(Trainer, ResumesToTheBitWhateverItKeeps) {
  for (const auto& [kept, decay, last] :
       {std::tuple{Kept::best, 0.0, 0.0}, {Kept::mean_of_last, 0.0, 0.5}, {Kept::running_mean, 0.6, 0.0}})
    for (const KeptWeights keep : {KeptWeights::best, KeptWeights::last}) {
      const qkv_test::TempFolder temp;
      Toy toy;
      toy.config.average_decay = decay;
      toy.config.average_last = last;
      toy.config.keep = keep;
      toy.loss = [](int64_t) { return 1.0; };  // the first epoch has the best loss
      const Outcome whole = train("", toy);
      EXPECT_EQ(whole.result.kept, kept == Kept::best && keep == KeptWeights::last ? Kept::last : kept);
      EXPECT_EQ(whole.result.kept_loss.has_value(), keep == KeptWeights::best && kept != Kept::mean_of_last);
      Toy first = toy;
      first.stop_after = 13;
      EXPECT_TRUE(train(temp / "run", first).result.interrupted);
      EXPECT_FALSE(fs::exists(temp / "run/model.safetensors"));
      EXPECT_EQ(train(temp / "run", toy).weights, whole.weights);
    }
}

TEST(Trainer, ARunningMeanIsWhatIsValidated) {
  Toy plain, running;
  plain.loss = running.loss = [](int64_t epoch) { return 1.0 / static_cast<double>(epoch); };
  running.config.average_decay = 0.75;
  const Outcome a = train("", plain), b = train("", running);
  ASSERT_EQ(a.validated.size(), 4u);
  EXPECT_EQ(b.validated[0], a.validated[0]);
  for (size_t i = 0; i < a.weights.size(); ++i)
    ASSERT_NEAR(b.validated[1][i], 0.75 * a.validated[0][i] + 0.25 * a.validated[1][i], 1e-6)
        << "the weights themselves are the same as without it";
  EXPECT_EQ(b.weights, b.validated[3]);
}

TEST(Trainer, RefusesACheckpointOfOtherData) {
  const qkv_test::TempFolder temp;
  Toy toy;
  toy.stop_after = 3;
  train(temp / "run", toy);
  toy.fingerprint = 8;
  EXPECT_EQ(qkv_test::error_of([&] { train(temp / "run", toy); }),
            temp / "run/checkpoints/last.safetensors: was trained on data that differs from the files as they are now");
}

TEST(Trainer, AContinuedTrainingTakesTheModelOfTheShorterAway) {
  const qkv_test::TempFolder temp;
  Toy toy;
  train(temp / "run", toy);
  EXPECT_EQ(run_weights(temp / "run"), temp / "run/model.safetensors");
  toy.config.epochs = 6;
  toy.stop_after = 22;
  train(temp / "run", toy);
  EXPECT_EQ(run_weights(temp / "run"), temp / "run/checkpoints/last.safetensors");
}

TEST(Trainer, CutsBatchesIntoAsManyShardsAsAskedFor) {
  const auto weights = [](std::optional<int64_t> shards) {
    Toy toy;
    toy.config.shards = shards;
    return train("", toy).weights;
  };
  EXPECT_EQ(weights({}), weights({}));
  EXPECT_NE(weights(1), weights(2)) << "dropout draws by shard";
  EXPECT_NE(weights(4), weights({})) << "25 rows each, where auto gives three shards of 32 rows and one of 4";
}

TEST(TrainingChanges, AllowALongerTrainingUnlessItsLengthMattersBefore) {
  const TrainingConfig ten{.epochs = 10};
  const auto may_change = [&](TrainingConfig asked) {
    return training_changes(ten, asked).may_change.contains("training.epochs");
  };
  EXPECT_TRUE(may_change({.epochs = 11}));
  EXPECT_FALSE(may_change({.epochs = 9}));
  EXPECT_FALSE(may_change({.epochs = 11, .schedule = ScheduleKind::cosine}));
  EXPECT_FALSE(may_change({.epochs = 20, .average_last = 0.5}));
  EXPECT_TRUE(training_changes(ten, ten).may_change.contains("training.patience"));
  for (const char* name : {"training.rate", "training.shards"})
    EXPECT_FALSE(training_changes(ten, ten).may_change.contains(name)) << name;
}

TEST(TrainingConfig, MakesTheOptimizerThatItNames) {
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  const auto first_state = [&](const TrainingConfig& config) {
    const auto optimizer = make_optimizer(config);
    optimizer->begin(all);
    const auto state = optimizer->state();
    return state.empty() ? std::string() : state[0].name;
  };
  EXPECT_EQ(first_state({}), "adam.m");
  EXPECT_EQ(first_state({.optimizer = OptimizerKind::adam}), "adam.m");
  EXPECT_EQ(first_state({.optimizer = OptimizerKind::sgd}), "");
  EXPECT_EQ(first_state({.optimizer = OptimizerKind::sgd, .momentum = 0.9}), "sgd.velocity");
  EXPECT_THROW(TrainingConfig({.momentum = 0.9}).check(false), Error);
}

TEST(TrainingConfig, OptimizersDifferInWhatWeightDecayIs) {
  const auto trained = [](OptimizerKind optimizer, double decay) {
    return train("", {.config = {.epochs = 2, .rate = 0.01, .optimizer = optimizer, .weight_decay = decay, .seed = 3}})
        .weights;
  };
  using enum OptimizerKind;
  EXPECT_EQ(trained(adamw, 0), trained(adam, 0));
  EXPECT_NE(trained(adamw, 0.1), trained(adam, 0.1));
  EXPECT_NE(trained(sgd, 0), trained(adam, 0));
  EXPECT_NE(trained(sgd, 0.1), trained(sgd, 0));
}

}  // namespace
}  // namespace qkv
