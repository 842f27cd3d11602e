// BERT, RoBERTa and ViT folders: tiny ones against transformers, and MiniLM where it is on the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/io/safetensors.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/softmax.h"
#include "qkv/tasks/encoding/hidden_words.h"
#include "qkv/tasks/encoding/leaks.h"
#include "qkv/tasks/encoding/sentence_encoder.h"
#include "qkv/tasks/vision/attention.h"
#include "qkv/tasks/vision/classifier.h"
#include "support/models.h"
#include "support/near.h"

namespace qkv {
namespace {

const std::string kGolden = std::string(QKV_SOURCE_DIR) + "/tests/golden/pretrained/";

std::vector<int32_t> listed_ids(const SafetensorsFile& file, const std::string& name) {
  const Ids ids = file.array(name).to_ids(name);
  return {ids.data().begin(), ids.data().end()};
}

Ids row(const SafetensorsFile& file, const std::string& name) {
  const std::vector<int32_t> ids = listed_ids(file, name);
  return Ids({1, std::ssize(ids)}, ids);
}

// By the largest element of `wanted`.
void expect_near(const Tensor& found, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.numel(), wanted.numel());
  qkv_test::expect_near_largest(found.viewed(wanted.shape()), wanted, tolerance, "found");
}

const std::vector<std::string> kTexts = {"The cat is asleep", "two DOGS read the red book and they sing in the house",
                                         "猫 sees, a fish!"};

// Every text of a golden file, and the gradients of its loss.
void compare_masked(const std::string& name, int texts, const std::vector<std::pair<std::string, std::string>>& names) {
  const SafetensorsFile golden(kGolden + name + ".golden.safetensors");
  const SentenceEncoder encoder(kGolden + name);
  const EncoderModel& model = encoder.model();
  for (int i = 0; i < texts; ++i) {
    SCOPED_TRACE(i);
    const std::string n = std::to_string(i) + ".";
    const Ids ids = row(golden, n + "ids"), types = row(golden, n + "types");
    const Tensor states = model.encoder(ids, types, {}, qkv::Run{});
    expect_near(states, golden.tensor(n + "states"), 1e-5);
    expect_near((*model.words)(states), golden.tensor(n + "logits"), 1e-5);
    const EncodedText read = i < 3 ? encoder.read_whole(kTexts[static_cast<size_t>(i)])
                                   : encoder.tokenizer().encode_pair(kTexts[0], kTexts[2]);
    EXPECT_EQ(read.ids(), listed_ids(golden, n + "ids"));
    EXPECT_EQ(read.types(), listed_ids(golden, n + "types"));
    expect_near(encoder.attention(read).weights, golden.tensor(n + "encoder"), 1e-5);
  }
  Tape tape;
  const Tensor loss =
      cross_entropy((*model.words)(model.encoder(row(golden, "hidden"), row(golden, "1.types"), {}, qkv::Run{})),
                    row(golden, "1.ids"));
  EXPECT_NEAR(loss.item(), golden.tensor("loss").item(), 1e-5);
  tape.backward(loss);
  std::map<std::string, Tensor> ours;
  for (const NamedTensor& p : parameters(model)) ours.emplace(p.name, p.tensor);
  for (const auto& [mine, theirs] : names) {
    SCOPED_TRACE(theirs);
    Tensor found = tape.grad(ours.at(mine)).copied(), wanted = golden.tensor("gradient." + theirs).copied();
    if (mine == "encoder.embedding.words")  // PyTorch keeps the gradient away from the embedding of padding
      for (Tensor* x : {&found, &wanted})
        std::fill_n(x->mutable_ptr() + encoder.config().pad * x->size(1), x->size(1), 0.f);
    expect_near(found, wanted, 1e-5);
  }
}

TEST(TinyBert, StatesLogitsMapsAndGradientsAreThoseOfTransformers) {
  compare_masked("bert", 4,
                 {{"encoder.embedding.words", "bert.embeddings.word_embeddings.weight"},
                  {"encoder.embedding.positions", "bert.embeddings.position_embeddings.weight"},
                  {"encoder.embedding.types", "bert.embeddings.token_type_embeddings.weight"},
                  {"encoder.embedding.norm.gamma", "bert.embeddings.LayerNorm.weight"},
                  {"encoder.0.self.to_q.weight", "bert.encoder.layer.0.attention.self.query.weight"},
                  {"encoder.1.self.to_out.bias", "bert.encoder.layer.1.attention.output.dense.bias"},
                  {"encoder.2.ffn.first.weight", "bert.encoder.layer.2.intermediate.dense.weight"},
                  {"encoder.2.ffn_norm.beta", "bert.encoder.layer.2.output.LayerNorm.bias"},
                  {"words.transform.weight", "cls.predictions.transform.dense.weight"},
                  {"words.output.bias", "cls.predictions.bias"}});
}

TEST(TinyRoberta, StatesLogitsMapsAndGradientsAreThoseOfTransformers) {
  compare_masked("roberta", 3,
                 {{"encoder.embedding.words", "roberta.embeddings.word_embeddings.weight"},
                  {"encoder.embedding.types", "roberta.embeddings.token_type_embeddings.weight"},
                  {"encoder.1.self.to_v.weight", "roberta.encoder.layer.1.attention.self.value.weight"},
                  {"words.norm.gamma", "lm_head.layer_norm.weight"},
                  {"words.output.bias", "lm_head.bias"}});
}

TEST(TinyBert, PaddedTextsHaveTheStatesOfTransformers) {
  const SafetensorsFile golden(kGolden + "bert.golden.safetensors");
  const SentenceEncoder encoder(kGolden + "bert");
  const Tensor wanted = golden.tensor("batch");
  const int64_t B = wanted.size(0), n = wanted.size(1), width = wanted.size(2);
  std::vector<int32_t> all(static_cast<size_t>(B * n)), lens;
  for (int64_t b = 0; b < B; ++b) {
    const auto ids = listed_ids(golden, std::to_string(b) + ".ids");
    std::copy(ids.begin(), ids.end(), all.begin() + b * n);
    lens.push_back(static_cast<int32_t>(ids.size()));
  }
  const Tensor found = encoder.model().encoder(Ids({B, n}, all), {}, Ids({B}, lens), qkv::Run{});
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = lens[static_cast<size_t>(b)];
    expect_near(found.part(b * n * width, {length, width}), wanted.part(b * n * width, {length, width}), 1e-5);
  }
}

TEST(TinyBert, FillsGapsInEitherSpelling) {
  for (const char* name : {"bert", "roberta"}) {
    const SentenceEncoder encoder(kGolden + name);
    const std::string& mask = encoder.tokenizer().piece(encoder.tokenizer().special().mask);
    const Filled plain = fill_gaps(encoder, "the [MASK] cat is [MASK]", 3),
                 own = fill_gaps(encoder, "the " + mask + " cat is " + mask, 3);
    ASSERT_EQ(plain.gaps.size(), 2u);
    ASSERT_EQ(plain.gaps[0].size(), 3u);
    EXPECT_EQ(plain.text, own.text);
    EXPECT_EQ(plain.gaps[0][0].probability, own.gaps[0][0].probability);
    // The probabilities are those of the logits at the mask.
    const EncodedText read = encoder.read_whole("the " + mask + " cat is " + mask);
    const auto ids = read.ids();
    const auto place = std::ranges::find(ids, encoder.tokenizer().special().mask) - ids.begin();
    const Tensor scores = softmax((*encoder.model().words)(encoder.states(read)));
    EXPECT_EQ(static_cast<float>(plain.gaps[0][0].probability), scores.at({0, place, plain.gaps[0][0].token}));
  }
}

TEST(TinyBert, ScoresEveryTokenHiddenOnce) {
  const SentenceEncoder encoder(kGolden + "bert");
  const TextScore score = hidden_score(encoder, "the cat\nis asleep", tr("the text"));
  EXPECT_EQ(score.tokens, 5);  // as ##leep
  double nats = 0;
  for (const std::string line : {"the cat", "is asleep"}) {
    const EncodedText read = encoder.read_whole(line);
    for (size_t i = 1; i + 1 < read.tokens.size(); ++i) {
      EncodedText hidden = read;
      hidden.tokens[i].id = encoder.tokenizer().special().mask;
      const Tensor scores = log_softmax((*encoder.model().words)(encoder.states(hidden)));
      nats -= double{scores.at({0, static_cast<int64_t>(i), read.tokens[i].id})};
    }
  }
  EXPECT_NEAR(score.nats, nats, 1e-5);
}

TEST(TinyBert, ClassesAreThoseOfTransformers) {
  const SentenceEncoder encoder(kGolden + "bert-classes");
  const SafetensorsFile golden(kGolden + "bert-classes.golden.safetensors");
  EXPECT_EQ(encoder.config().classes, (std::vector<std::string>{"animal", "thing", "person"}));
  TextVectors sizes;
  expect_near(encoder.classify(kTexts, encoder.defaults(), sizes), softmax(golden.tensor("logits")), 1e-5);
}

TEST(TinySentenceEncoder, VectorsAreThoseOfSentenceTransformers) {
  const SentenceEncoder encoder(kGolden + "sentence");
  const SafetensorsFile golden(kGolden + "sentence.golden.safetensors");
  EmbedOptions options = encoder.defaults();
  EXPECT_EQ(options.pooling, TextPooling::mean);
  EXPECT_TRUE(options.normalize);
  EXPECT_EQ(options.most, 10);
  const TextVectors found = encoder.embed(kTexts, options);
  expect_near(found.rows, golden.tensor("vectors"), 1e-5);
  EXPECT_EQ(found.tokens, (std::vector<int64_t>{7, 10, 8}));
  EXPECT_EQ(found.left_out, (std::vector<int64_t>{0, 5, 0}));
  // A text's vector is the same in any batch.
  options.batch_tokens = 1;
  const TextVectors alone = encoder.embed(kTexts, options);
  EXPECT_TRUE(std::ranges::equal(found.rows.data(), alone.rows.data()));
}

TEST(TinySentenceEncoder, PoolsTheFirstTokenAndTheLargest) {
  const SentenceEncoder encoder(kGolden + "bert");
  EmbedOptions options = encoder.defaults();
  const std::vector<std::string> one{kTexts[0]};
  const Tensor states = encoder.states(encoder.read_whole(one[0]));
  options.pooling = TextPooling::cls;
  const Tensor first = encoder.embed(one, options).rows;
  options.pooling = TextPooling::max;
  const Tensor largest = encoder.embed(one, options).rows;
  for (int64_t c = 0; c < states.size(2); ++c) {
    EXPECT_EQ(first.at({0, c}), states.at({0, 0, c}));
    float most = -1e30f;
    for (int64_t i = 0; i < states.size(1); ++i) most = std::max(most, states.at({0, i, c}));
    EXPECT_EQ(largest.at({0, c}), most);
  }
}

TEST(TinyBert, StatesDependOnTheirOwnTextAlone) {
  const SentenceEncoder encoder(kGolden + "bert");
  const EncoderLeakReport report = encoder_leaks(encoder, random_encoder_texts(encoder, 8, Rng(3)), Rng(4));
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.controls, 8);
}

TEST(TinyBert, OneMapIsThatOfAllMaps) {
  const SentenceEncoder encoder(kGolden + "bert");
  const EncodedText read = encoder.read_whole(kTexts[0]);
  const StackAttention all = encoder.attention(read), one = encoder.attention(read, {}, {.layer = 1, .head = 2}),
                       layer = encoder.attention(read, {}, {.layer = 2, .values = false});
  const int64_t n = std::ssize(read.tokens), heads = all.weights.size(1);
  ASSERT_EQ(one.weights.shape(), (Shape{1, 1, n, n}));
  ASSERT_EQ(layer.weights.shape(), (Shape{1, heads, n, n}));
  const auto same = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.data(), b.data()); };
  EXPECT_TRUE(same(one.weights, all.weights.part((heads + 2) * n * n, {1, 1, n, n})));
  EXPECT_TRUE(same(one.value_weighted, all.value_weighted.part((heads + 2) * n * n, {1, 1, n, n})));
  EXPECT_TRUE(same(layer.weights, all.weights.part(2 * heads * n * n, {1, heads, n, n})));
  EXPECT_FALSE(layer.value_weighted.defined());
}

TEST(TinyVit, PixelsLogitsMapsAndGradientsAreThoseOfTransformers) {
  const SafetensorsFile golden(kGolden + "vit.golden.safetensors");
  const Classifier classifier(kGolden + "vit");
  const VisionTransformer& model = classifier.model();
  EXPECT_EQ(classifier.facts().classes, (std::vector<std::string>{"cat", "dog", "fish"}));
  for (int i = 0; i < 2; ++i) {  // the second picture has another size
    SCOPED_TRACE(i);
    const std::string n = std::to_string(i) + ".", file = kGolden + "vit." + std::to_string(i) + ".png";
    const ImageSet set = read_image_file(file);
    classifier.check_size(set, file, OtherSizes::refused);
    const Tensor pixels = classifier.input(set, 0);
    expect_near(pixels, golden.tensor(n + "pixels"), 1e-6);
    expect_near(model.logits(pixels, qkv::Run{}), golden.tensor(n + "logits"), 1e-5);
    expect_near(image_attention(model, pixels).weights, golden.tensor(n + "encoder"), 1e-5);
    expect_near(classifier.probabilities(set), softmax(golden.tensor(n + "logits")), 1e-5);
  }
  Tape tape;
  const Tensor loss = cross_entropy(model.logits(golden.tensor("0.pixels"), qkv::Run{}), Ids({1}, {2}));
  EXPECT_NEAR(loss.item(), golden.tensor("loss").item(), 1e-5);
  tape.backward(loss);
  std::map<std::string, Tensor> ours;
  for (const NamedTensor& p : parameters(model)) ours.emplace(p.name, p.tensor);
  const std::pair<std::string, std::string> names[] = {
      {"embed.weight", "vit.embeddings.patch_embeddings.projection.weight"},
      {"cls", "vit.embeddings.cls_token"},
      {"positions", "vit.embeddings.position_embeddings"},
      {"encoder.0.self.to_k.weight", "vit.layers.0.attention.k_proj.weight"},
      {"encoder.1.ffn.second.bias", "vit.layers.1.mlp.fc2.bias"},
      {"encoder.2.self_norm.gamma", "vit.layers.2.layernorm_before.weight"},
      {"encoder.norm.beta", "vit.layernorm.bias"},
      {"output.weight", "classifier.weight"}};
  for (const auto& [mine, theirs] : names) {
    SCOPED_TRACE(theirs);
    expect_near(tape.grad(ours.at(mine)), golden.tensor("gradient." + theirs), 1e-5);
  }
}

}  // namespace
}  // namespace qkv
