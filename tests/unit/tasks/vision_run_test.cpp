// Runs of image classification: learning, resuming to the bit, threads, folders, what is refused, the classifier, maps.
#include "qkv/tasks/vision/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/data/pictures.h"
#include "qkv/report/classifications.h"
#include "qkv/report/image_maps.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/run_config.h"
#include "qkv/tasks/vision/classifier.h"
#include "support/files.h"
#include "support/near.h"
#include "support/threads.h"

namespace qkv::tests {
namespace {

namespace fs = std::filesystem;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

VisionConfig small(int64_t epochs = 2) {
  VisionConfig c;
  c.data.images = "pictures";
  c.data.picture_count = 300;
  c.data.image_size = 16;
  c.data.shift = 1;
  c.model.patch = 4;
  c.model.hidden = 16;
  c.model.ffn = 32;
  c.model.heads = 2;
  c.model.layers = 2;
  c.training.epochs = epochs;
  c.training.batch_rows = 50;
  c.training.rate = 0.003;
  c.training.checkpoint_seconds = 0;
  return c;
}

std::vector<float> weights(const VisionRun& run) {
  const auto data = run.parameters().flat().data();
  return {data.begin(), data.end()};
}

class StopAfter : public Observer {
 public:
  StopAfter(int64_t step, std::atomic<bool>& stop) : step_(step), stop_(stop) {}
  void step(const Progress& p) override {
    if (p.step >= step_) stop_ = true;
  }

 private:
  int64_t step_;
  std::atomic<bool>& stop_;
};

TEST(VisionRun, LearnsAndReportsLossAndAccuracy) {
  VisionConfig c = small(6);
  c.data.picture_count = 1500;
  c.data.shift = 0;
  c.training.rate = 0.006;
  VisionRun run(c, "");
  const TrainResult result = run.train();
  ASSERT_TRUE(result.progress.valid_accuracy);
  EXPECT_EQ(result.progress.counted, Counted::images);
  EXPECT_EQ(result.progress.count, 1500);
  EXPECT_GT(*result.progress.valid_accuracy, 0.18);  // by chance: 0.1
  EXPECT_LT(*result.progress.valid_loss, 2.2);
}

TEST(VisionRun, ResumesToTheSameBitsAtAnyNumberOfThreads) {
  const TempFolder folder;
  VisionRun whole(small(), "");
  whole.train();
  const std::vector<float> expected = weights(whole);
  const std::string name = folder / "run";
  for (const int64_t step : {1, 4, 7}) {
    const qkv_test::ThreadsScope scope(static_cast<int>(step));
    VisionRun run(small(), name);
    std::atomic<bool> stop{false};
    StopAfter observer(step, stop);
    Observer* observers[] = {&observer};
    EXPECT_TRUE(run.train(observers, &stop).interrupted);
  }
  VisionRun last(small(), name);
  EXPECT_FALSE(last.train().interrupted);
  EXPECT_EQ(weights(last), expected);
  // metrics.jsonl has both epochs once, with accuracy.
  std::string metrics = file_bytes(name + "/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);
  EXPECT_NE(metrics.find("\"valid_accuracy\":"), std::string::npos);
}

TEST(VisionRun, ARunResumesWithItsOwnSettingsAndDataAlone) {
  const TempFolder folder;
  const std::string name = folder / "run";
  VisionRun(small(), name).train();
  VisionConfig other = small();
  other.model.patch = 8;
  EXPECT_EQ(error_of([&] { VisionRun(other, name); }), name + "/config.yaml: model.patch is 4, but 8 was requested");
  other = small(3);
  EXPECT_EQ(VisionRun(other, name).train().progress.epoch, 3);
  const ImageFacts facts = load_image_facts(name);
  EXPECT_EQ(facts.size, (ImageSize{1, 16, 16}));
  EXPECT_EQ(facts.classes.size(), 10u);
  put_bytes(name + "/images.json", "{\"channels\": 1, \"height\": 16, \"width\": 1e9, \"classes\": []}");
  EXPECT_EQ(error_of([&] { Classifier c(name); }), name + "/images.json: \"width\" is missing or is not a size");
}

TEST(VisionRun, TheClassifierOfAFolderAnswersLikeTheModelInMemory) {
  const TempFolder folder;
  const std::string name = folder / "run";
  VisionRun run(small(), name);
  run.train();
  const Classifier read(name), here(run.model(), run.data().facts, run.config());
  const ImageSet some = drawn_pictures({.count = 70, .side = 16, .seed = 9});
  const Tensor a = read.probabilities(some), b = here.probabilities(some);
  ASSERT_EQ(a.shape(), (Shape{70, 10}));
  EXPECT_TRUE(std::equal(a.ptr(), a.ptr() + a.numel(), b.ptr()));
  const auto answers = report::classifications(read, some, a, "x", 5);
  ASSERT_EQ(answers.size(), 70u);
  EXPECT_EQ(answers[3].answers.size(), 5u);
  EXPECT_GE(answers[3].answers[0].probability, answers[3].answers[1].probability);
  EXPECT_EQ(answers[3].label, "star");
  const report::Confusion confusion = report::confusion_of(read, some, a);
  EXPECT_EQ(confusion.images(), 70);
  const auto json = nlohmann::json::parse(report::to_json(confusion));
  EXPECT_DOUBLE_EQ(json["accuracy"], static_cast<double>(confusion.right()) / 70);
  read.check_size(some, "x.png", OtherSizes::refused);
  VisionConfig unsized_config = small();
  unsized_config.data.image_size = 0;
  const Classifier strict(run.model(), run.data().facts, unsized_config);
  const ImageSet large = drawn_pictures({.count = 1, .side = 28});
  EXPECT_EQ(error_of([&] { strict.check_size(large, "x.png", OtherSizes::refused); }),
            "x.png: has 28 x 28 pixels, but the model was trained with 16 x 16");
  strict.check_size(large, "x.png", OtherSizes::stretched);
}

TEST(VisionRun, MapsOverAnImageAreTheRowsOfItsAttention) {
  VisionRun run(small(1), "");
  const Classifier classifier(run.model(), run.data().facts, run.config());
  const ImageSet one = drawn_pictures({.count = 1, .side = 16});
  const report::SeenImage seen = report::seen_image(classifier, one, 0, "x.png", {});
  ASSERT_EQ(seen.attention.weights.shape(), (Shape{2, 2, 17, 17}));
  EXPECT_TRUE(seen.attention.class_token);
  const Tensor map = seen_patches(seen.attention, seen.attention.weights, {});
  ASSERT_EQ(map.shape(), (Shape{2, 2, 4, 4}));
  for (int64_t p = 0; p < 16; ++p) EXPECT_EQ(map.ptr()[p], seen.attention.weights.ptr()[1 + p]);
  const Tensor patch = seen_patches(seen.attention, seen.attention.weights, {.patch = 5});
  for (int64_t p = 0; p < 16; ++p) EXPECT_EQ(patch.ptr()[p], seen.attention.weights.ptr()[6 * 17 + 1 + p]);
  // Rollout of all tokens has rows that sum to 1.
  const Tensor rolled = rollout(seen.attention.weights);
  for (int64_t r = 0; r < 17; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < 17; ++c) sum += rolled.ptr()[(17 + r) * 17 + c];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  report::MapChoice choice;
  choice.rollout = choice.values = true;
  const auto figures = report::image_figures(seen, choice, report::FigureUse::paper);
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[0].panels.size(), 4u);
  EXPECT_EQ(std::get<HeatMap>(figures[0].panels[0].content).picture.shape(), (Shape{16, 16, 1}));
  const auto json = nlohmann::json::parse(report::to_json(seen, choice));
  EXPECT_EQ(json["attention"].size(), 2u);
  EXPECT_EQ(json["rollout"][0][0].size(), 4u);
  choice.layer = 3;
  EXPECT_EQ(error_of([&] { report::image_figures(seen, choice, report::FigureUse::paper); }),
            "--layer 3: the last layer of the encoder attention is 2");
}

TEST(VisionConfig, RefusesWhatCannotWorkTogether) {
  const auto refused = [](const std::string& yaml) {
    return error_of([&] {
      VisionConfig c;
      c.parse(yaml, "c.yaml");
      c.check();
    });
  };
  EXPECT_EQ(refused("model:\n  kind: vision\n"),
            "there are no images: give --images FILE (IDX), a folder of PNG files by class, pictures or fashion-mnist");
  EXPECT_EQ(refused("data:\n  images: pictures\n  valid_share: 0.1\n"),
            "data.images pictures has its own validation data: data.valid_images and data.valid_share do not apply");
  EXPECT_EQ(refused("data:\n  images: pictures\n  labels: x\n"),
            "data.images pictures has its own labels: data.labels and data.classes do not apply");
  EXPECT_EQ(refused("data:\n  images: x\n  valid_labels: y\n"),
            "data.valid_labels is \"y\", but data.valid_images is not set");
  EXPECT_EQ(refused("data:\n  images: pictures\ntraining:\n  by_length: true\n"),
            "training.batch_tokens and training.by_length are for text; images have training.batch_rows");
  EXPECT_EQ(refused("data:\n  images: pictures\nmodel:\n  heads: 3\n"),
            "model.hidden 64 is not divisible by model.heads 3");
}

TEST(VisionData, ReadsFilesAndFoldersAndSplitsThem) {
  const TempFolder folder;
  const ImageSet set = drawn_pictures({.count = 40, .side = 8});
  const std::string images = folder / "some-images-idx3-ubyte", labels = folder / "some-labels-idx1-ubyte";
  write_idx(set, images, labels);
  VisionDataConfig c;
  c.images = images;
  c.valid_share = 0.25;
  VisionData data = read_vision_data(c, 1);
  EXPECT_EQ(data.train.count(), 30);
  EXPECT_EQ(data.valid.count(), 10);
  EXPECT_EQ(data.facts.classes[9], "9");
  c.classes = "a, b, c, d, e, f, g, h, i, ten";
  EXPECT_EQ(read_vision_data(c, 1).facts.classes[9], "ten");
  c.classes = "a,b";
  EXPECT_EQ(error_of([&] { read_vision_data(c, 1); }), "data.classes has 2 names, but the labels need 10");
  c.classes = "";
  fs::remove(labels);
  EXPECT_EQ(error_of([&] { read_vision_data(c, 1); }), images + ": has no labels; give their file with data.labels");
  c.images = folder / "nothing";
  EXPECT_EQ(error_of([&] { read_vision_data(c, 1); }), "cannot open " + c.images + ": there is no such file or folder");
  put_bytes(folder / "text", "some text");
  c.images = folder / "text";
  EXPECT_EQ(error_of([&] { read_vision_data(c, 1); }),
            c.images + ": is not an IDX file; expected one, or a folder with a folder of PNG files for each class");
  // A folder of classes, and one for validation with fewer of them in another order of numbers.
  for (const char* name : {"train/a", "train/b", "train/c", "valid/c"}) fs::create_directories(folder / name);
  for (const char* name : {"train/a/1.png", "train/b/1.png", "train/c/1.png", "train/c/2.png", "valid/c/1.png"})
    put_bytes(folder / name, encode_png(Picture{8, 8, 1, std::vector<uint8_t>(64, 7)}));
  c = {};
  c.images = folder / "train";
  c.valid_images = folder / "valid";
  data = read_vision_data(c, 1);
  EXPECT_EQ(data.train.labels, (std::vector<int32_t>{0, 1, 2, 2}));
  EXPECT_EQ(data.valid.labels, (std::vector<int32_t>{2}));
  fs::rename(folder / "valid/c", folder / "valid/d");
  EXPECT_EQ(error_of([&] { read_vision_data(c, 1); }),
            c.valid_images + ": has a class \"d\" that the training images do not have");
  // MNIST's folder has its own test set.
  write_idx(set, folder / "train-images-idx3-ubyte", folder / "train-labels-idx1-ubyte");
  write_idx(drawn_pictures({.count = 10, .side = 8, .seed = 2}), folder / "t10k-images-idx3-ubyte",
            folder / "t10k-labels-idx1-ubyte");
  c = {};
  c.images = folder.path();
  c.limit = 15;
  data = read_vision_data(c, 1);
  EXPECT_EQ(data.train.count(), 15);
  EXPECT_EQ(data.valid.count(), 10);
}

TEST(VisionTask, OrderAndAugmentationDependOnTheEpochAlone) {
  VisionConfig c = small();
  c.data.flip = true;
  VisionRun run(c, "");
  const VisionTask task(run.model(), run.config(), run.data());
  EXPECT_EQ(task.batches(), 6);
  const VisionBatch later = task.batch(1, 3), first = task.batch(0, 3), again = task.batch(1, 3);
  EXPECT_EQ(later.rows, again.rows);
  EXPECT_NE(later.rows, first.rows);
  EXPECT_EQ(std::ssize(first.rows), 50);
  const qkv::Run training{.training = true};
  const auto loss = [&](const VisionBatch& batch) {
    return task.loss(batch, 0, std::ssize(batch.rows), training).sum.item();
  };
  EXPECT_EQ(loss(later), loss(again));
  // The same images in another epoch are turned otherwise.
  EXPECT_NE(loss(later), loss({.rows = later.rows, .epoch = 2}));
}

}  // namespace
}  // namespace qkv::tests
