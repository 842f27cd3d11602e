// Callbacks of fit: one ends training early, and all are saved and restored with it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "programs/toy_task.h"
#include "qkv/train/fit.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// Counts epochs, keeps the sum of the first weight after each, and ends training after a number of them.
class Counter : public Callback {
 public:
  Counter(const Parameters& all, int64_t end) : all_(all), end_(end) {}
  void after_epoch(Progress& p) override {
    ++epochs;
    p.valid_loss = 1.0 / static_cast<double>(epochs);
    sum = Tensor({1}, {sum.item() + all_.flat().ptr()[0]});
  }
  bool ends_training() const override { return epochs >= end_; }
  void save(Checkpoint& out) const override {
    out.set("companion.epochs", epochs);
    out.tensors["companion.sum"] = sum;
  }
  void saved() const override { saved_steps.push_back(load_checkpoint(file).integer("step")); }
  void restore(const Checkpoint& in) override {
    epochs = in.integer("companion.epochs");
    sum = in.tensors.at("companion.sum").copied();
  }
  int64_t epochs = 0;
  Tensor sum = zeros({1});
  std::string file;
  mutable std::vector<int64_t> saved_steps;  // of the file, at each call of saved()

 private:
  const Parameters& all_;
  int64_t end_;
};

struct Outcome {
  std::vector<float> weights;
  float sum;
  int64_t epochs;
  FitResult result;
  std::vector<int64_t> saved_steps;
};

Outcome train(const std::string& checkpoint, int64_t epochs, int64_t end, double checkpoint_seconds = 0,
              const std::atomic<bool>* stop = nullptr) {
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  Counter counter(all, end);
  counter.file = checkpoint;
  const FitResult r = fit(all, adam,
                          {.epochs = epochs,
                           .rate = constant_rate(0.01f),
                           .seed = 3,
                           .checkpoint = checkpoint,
                           .checkpoint_seconds = checkpoint_seconds,
                           .callbacks = {&counter},
                           .stop = stop},
                          tests::ToyTask{model});
  return {
      {all.flat().data().begin(), all.flat().data().end()}, counter.sum.item(), counter.epochs, r, counter.saved_steps};
}

class CallbackTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file() const { return folder_ / "last.safetensors"; }
  fs::path folder_ = fs::temp_directory_path() / ("qkv-callback-" + std::to_string(::getpid()));
};

TEST_F(CallbackTest, EndsTrainingEarlyAndForGood) {
  const Outcome first = train(file(), 10, 3);
  EXPECT_TRUE(first.result.ended_early);
  EXPECT_EQ(first.epochs, 3);
  EXPECT_EQ(first.result.progress.epoch, 3);
  EXPECT_EQ(first.result.progress.valid_loss, 1.0 / 3);
  ASSERT_FALSE(first.saved_steps.empty());
  EXPECT_EQ(first.saved_steps.back(), first.result.progress.step) << "told before it was on the disk";
  const Outcome again = train(file(), 10, 3);
  EXPECT_TRUE(again.result.ended_early);
  EXPECT_EQ(again.result.progress.steps_here, 0);
  EXPECT_EQ(again.weights, first.weights);
}

TEST_F(CallbackTest, ComesBackWithTheCheckpointBitForBit) {
  const Outcome whole = train("", 6, 100);
  train(file(), 2, 100);
  const Outcome resumed = train(file(), 6, 100);
  EXPECT_EQ(resumed.weights, whole.weights);
  EXPECT_EQ(resumed.sum, whole.sum);
  EXPECT_EQ(resumed.epochs, 6);
}

TEST_F(CallbackTest, ATrainingThatHadEndedContinuesOnceNoCallbackEndsIt) {
  EXPECT_TRUE(train(file(), 10, 3).result.ended_early);
  const Outcome longer = train(file(), 10, 5);
  EXPECT_TRUE(longer.result.ended_early);
  EXPECT_EQ(longer.epochs, 5);
  EXPECT_EQ(longer.weights, train("", 10, 5).weights);
}

TEST_F(CallbackTest, SeveralAreCalledInTheirOrderAndAnyOneOfThemEndsTraining) {
  struct Named : Callback {
    Named(std::string name, int64_t end, std::vector<std::string>& calls)
        : name(std::move(name)), end(end), calls(calls) {}
    void after_epoch(Progress& p) override {
      epoch = p.epoch;
      calls.push_back(text(name, " after ", epoch));
    }
    bool ends_training() const override { return epoch >= end; }
    void save(Checkpoint& out) const override { out.set(text(kCallbackPrefix, name), epoch); }
    void saved() const override { calls.push_back(name + " saved"); }
    void restore(const Checkpoint& in) override {
      epoch = in.integer(text(kCallbackPrefix, name));
      calls.push_back(text(name, " restored ", epoch));
    }
    std::string name;
    int64_t end, epoch = 0;
    std::vector<std::string>& calls;
  };
  const auto calls = [&] {
    std::vector<std::string> out;
    tests::ToyModel model(Rng(1));
    const Parameters all = flatten(model);
    Adam adam;
    Named first("first", 9, out), second("second", 2, out);
    const FitResult r =
        fit(all, adam, {.epochs = 5, .checkpoint = file(), .callbacks = {&first, &second}}, tests::ToyTask{model});
    EXPECT_TRUE(r.ended_early);
    return out;
  };
  EXPECT_EQ(calls(), (std::vector<std::string>{"first after 1", "second after 1", "first saved", "second saved",
                                               "first after 2", "second after 2", "first saved", "second saved"}));
  EXPECT_EQ(calls(), (std::vector<std::string>{"first restored 2", "second restored 2"}));
}

TEST_F(CallbackTest, SavesAtTheEndWhateverTheClockSays) {
  train(file(), 4, 100, 3600);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_EQ(load_checkpoint(file()).integer("epoch"), 4);
}

TEST_F(CallbackTest, AnInterruptSavesWhateverTheClockSays) {
  const std::atomic<bool> stop = true;
  const Outcome cut = train(file(), 4, 100, 3600, &stop);
  EXPECT_TRUE(cut.result.interrupted);
  EXPECT_EQ(load_checkpoint(file()).integer("step"), 1);
  EXPECT_EQ(train(file(), 4, 100).weights, train("", 4, 100).weights);
}

TEST(ParameterAverage, HasTheBitsOfTheFormulaElementByElement) {
  for (const double decay : {0.0, 0.7}) {
    ParameterAverage average(decay);
    std::vector<float> wanted(1003, 0.f);
    for (int count = 1; count <= 5; ++count) {
      const Tensor w = normal({1003}, Rng(static_cast<uint64_t>(count)));
      average.add(w);
      const float share = decay > 0 && count > 1 ? static_cast<float>(1 - decay) : 1.0f / static_cast<float>(count);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += share * (w.ptr()[i] - wanted[i]);
      EXPECT_EQ(average.count(), count);
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), average.average().ptr())) << count;
    }
    ParameterAverage resumed(decay);
    resumed.restore(average.average().copied(), average.count());
    const Tensor last = normal({1003}, Rng(9));
    average.add(last);
    resumed.add(last);
    EXPECT_TRUE(std::equal(resumed.average().data().begin(), resumed.average().data().end(), average.average().ptr()));
  }
}

}  // namespace
}  // namespace qkv
