// Encoders trained further: a step against transformers, runs as folders, and the classes of other data.
#include "qkv/tasks/encoding/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "qkv/core/check.h"
#include "qkv/io/safetensors.h"
#include "qkv/tasks/encoding/sentence_encoder.h"
#include "support/files.h"
#include "support/models.h"
#include "support/near.h"

namespace qkv {
namespace {

const std::string kGolden = std::string(QKV_SOURCE_DIR) + "/tests/golden/pretrained/";
const std::string kLabelled =
    "The cat is asleep\tanimal\n"
    "two DOGS read the red book and they sing in the house\tperson\n"
    "猫 sees, a fish!\tthing\n";

std::string written(const qkv_test::TempFolder& folder, const std::string& name, const std::string& content) {
  std::ofstream(folder.path() + "/" + name) << content;
  return folder.path() + "/" + name;
}

EncodingConfig tuning(const std::string& name, const std::string& text) {
  EncodingConfig config = read_pretrained_encoding_config(kGolden + name);
  config.training.init = kGolden + name;
  config.data.text = text;
  return config;
}

TEST(EncodingTask, AStepOfClassesHasTheLossAndGradientsOfTransformers) {
  const qkv_test::TempFolder folder;
  EncodingConfig config = tuning("bert-classes", written(folder, "texts.tsv", kLabelled));
  const EncodingRun run(config, "");
  const SafetensorsFile golden(kGolden + "bert-classes.golden.safetensors");
  const EncodingBatch batch = run.task().batch(0, 0);
  ASSERT_EQ(batch.rows.size(), 3u);
  Tape tape;
  const Loss loss = run.task().loss(batch, 0, 3, qkv::Run{.training = true});
  EXPECT_EQ(loss.count, 3);
  EXPECT_NEAR(loss.sum.item() / 3, golden.tensor("loss").item(), 1e-5);
  tape.backward(loss.sum);
  std::map<std::string, Tensor> ours;
  for (const NamedTensor& p : parameters(run.model())) ours.emplace(p.name, p.tensor);
  int compared = 0;
  const auto table = bert_table(Architecture::bert, config.model.bert, nullptr);
  for (const auto& [name, parameter] : ours) {
    SCOPED_TRACE(name);
    Tensor found = tape.grad(parameter).copied();
    for (int64_t i = 0; i < found.numel(); ++i) found.mutable_ptr()[i] /= 3;
    ++compared;
    if (name.ends_with("to_k.bias")) {  // the same for all keys of a query: zero but for rounding
      for (const float x : found.data()) EXPECT_LT(std::abs(x), 1e-6f);
      continue;
    }
    const Tensor wanted = golden.tensor("gradient." + rule_of(table->table, name)->theirs);
    qkv_test::expect_near_largest(found.viewed(wanted.shape()), wanted, 1e-5, "found");
  }
  EXPECT_EQ(compared, 57);
}

TEST(EncodingTask, HidesTheAskedShareOfWordsAndNoSpecialToken) {
  const qkv_test::TempFolder folder;
  EncodingConfig config = tuning("bert", written(folder, "texts.txt", "the cat is asleep\n\ntwo dogs read a book\n"));
  config.model.mask_share = 0.4;
  const EncodingRun run(config, "");
  EXPECT_EQ(run.data().train.count(), 2);  // the empty line is skipped
  const EncodingBatch batch = run.task().batch(0, 0);
  // the cat is as ##leep; two dog ##s read a book: 2 of 5 and 2 of 6
  EXPECT_EQ(run.task().count(batch), 4);
  EXPECT_EQ(run.task().loss(batch, 0, 2, qkv::Run{}).count, 4);
  EXPECT_GT(run.task().loss(batch, 0, 2, qkv::Run{}).sum.item(), 0);
}

TEST(EncodingTask, RowsOfABatchDoNotDependOnEachOther) {
  const qkv_test::TempFolder folder;
  for (const char* name : {"bert", "bert-classes"}) {
    SCOPED_TRACE(name);
    const EncodingRun run(tuning(name, written(folder, "texts.tsv", kLabelled)), "");
    const EncodingBatch batch = run.task().batch(2, 0);
    double apart = 0;
    for (int64_t i = 0; i < 3; ++i) apart += run.task().loss(batch, i, i + 1, qkv::Run{}).sum.item();
    EXPECT_NEAR(run.task().loss(batch, 0, 3, qkv::Run{}).sum.item(), apart, 1e-4);
  }
}

TEST(EncodingRun, IsAFolderThatOpensAsTheModelThatWasTrained) {
  for (const char* name : {"bert", "bert-classes", "roberta"}) {
    SCOPED_TRACE(name);
    const qkv_test::TempFolder folder;
    EncodingConfig config = tuning(name, written(folder, "texts.tsv", kLabelled));
    config.training.epochs = 2;
    config.training.rate = 0.01;
    const std::string path = folder.path() + "/run";
    EncodingRun run(config, path);
    ASSERT_TRUE(run.start());
    EXPECT_TRUE(run.start()->weights.fresh.empty());
    EXPECT_TRUE(run.start()->weights.dropped.empty());
    run.train();
    const SentenceEncoder opened(path), before(kGolden + name);
    EXPECT_EQ(opened.config().classes, run.data().classes);
    const EncodedText read = opened.read_whole("the cat is asleep");
    EXPECT_EQ(read.ids(), before.read_whole("the cat is asleep").ids());
    const Tensor found = opened.states(read);
    const int64_t n = std::ssize(read.tokens);
    const Tensor wanted = run.model().encoder(Ids({1, n}, read.ids()), Ids({1, n}, read.types()), {}, qkv::Run{});
    EXPECT_TRUE(std::ranges::equal(found.data(), wanted.data()));
    EXPECT_FALSE(std::ranges::equal(found.data(), before.states(read).data()));
  }
}

TEST(EncodingRun, KeepsTheNumbersOfKnownClassesAndMakesANewLayerForOthers) {
  const qkv_test::TempFolder folder;
  const std::string some = written(folder, "some.tsv", "a cat\tthing\ntwo dogs\tanimal\n"),
                    others = written(folder, "others.tsv", "a cat\tgood\ntwo dogs\tbad\nwe read\tbad\n");
  const EncodingRun known(tuning("bert-classes", some), "");
  EXPECT_EQ(known.data().classes, (std::vector<std::string>{"animal", "thing", "person"}));
  EXPECT_EQ(known.data().train.labels, (std::vector<int32_t>{1, 0}));
  EXPECT_TRUE(known.start()->weights.fresh.empty());
  const EncodingRun made(tuning("bert-classes", others), "");
  EXPECT_EQ(made.data().classes, (std::vector<std::string>{"bad", "good"}));
  EXPECT_EQ(made.start()->weights.fresh, (std::vector<std::string>{"classes.output.weight", "classes.output.bias"}));
  EXPECT_EQ(made.start()->weights.dropped, (std::vector<std::string>{"classifier.bias", "classifier.weight"}));
  // A head of classes for a model that has none.
  EncodingConfig config = tuning("bert", others);
  config.model.bert.head = EncoderHead::classes;
  const EncodingRun fresh(config, "");
  EXPECT_EQ(fresh.start()->weights.fresh.size(), 4u);
  EXPECT_TRUE(std::ranges::all_of(fresh.start()->weights.dropped,
                                  [](const std::string& name) { return name.starts_with("cls.predictions."); }));
}

}  // namespace
}  // namespace qkv
