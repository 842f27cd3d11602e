// Weights loaded by name, and the tables of names in both directions.
#include "qkv/tasks/pretrained/start.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "qkv/core/check.h"
#include "qkv/tasks/encoding/sentence_encoder.h"
#include "qkv/tasks/pretrained/language.h"
#include "qkv/tasks/pretrained/translation.h"
#include "qkv/tasks/pretrained/vit.h"

namespace qkv {
namespace {

const std::string kGolden = std::string(QKV_SOURCE_DIR) + "/tests/golden/pretrained/";

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.ptr(), b.ptr(), static_cast<size_t>(a.numel()) * sizeof(float)) == 0;
}

Parameters parameters_of(const std::string& folder) {
  if (folder.ends_with("marian")) {
    static std::vector<PretrainedTranslation> kept;
    kept.push_back(open_pretrained_translation(folder));
    return kept.back().model->parameters();
  }
  if (folder.ends_with("vit")) {
    static std::vector<PretrainedVision> kept;
    kept.push_back(open_pretrained_vision(folder));
    return in_place(*kept.back().model);
  }
  if (task_of(architecture_of(folder)) == TaskKind::encoding) {
    static std::deque<SentenceEncoder> kept;
    return in_place(kept.emplace_back(folder).model());
  }
  static std::vector<PretrainedLanguage> kept;
  kept.push_back(open_pretrained_language(folder));
  return in_place(*kept.back().model);
}

TEST(PretrainedWeights, GoBackToTheFolderWithoutChangingABit) {
  for (const char* name : {"marian", "gpt2", "llama", "llama_tied", "bert", "bert-classes", "roberta", "vit"}) {
    SCOPED_TRACE(name);
    const PretrainedSource source = pretrained_source(kGolden + name);
    const auto theirs = in_their_layout(parameters_of(kGolden + name), source.table,
                                        [&](const std::string& tensor) { return source.weights->shape(tensor); });
    int64_t values = 0;
    for (const auto& [tensor, found] : theirs) {
      ASSERT_TRUE(source.weights->has(tensor)) << tensor;
      EXPECT_TRUE(same_bits(found, source.weights->tensor(tensor))) << tensor;
      values += found.numel();
    }
    EXPECT_EQ(values, count_values(*source.weights, source.table));
  }
}

TEST(PretrainedWeights, AreLoadedByName) {
  const std::string folder = kGolden + "marian";
  const PretrainedSource source = pretrained_source(folder);
  const PretrainedTranslation opened = open_pretrained_translation(folder);
  const auto model_with = [&](auto&& change) {
    TranslationConfig config = opened.config;
    change(config.transformer());
    return std::make_unique<TranslationModel>(config, opened.tokenizers.sizes(), Rng(3));
  };
  const auto same = model_with([](TransformerConfig&) {});
  const LoadedByName all = load_by_name(*source.weights, source.table, same->parameters());
  EXPECT_TRUE(all.fresh.empty());
  EXPECT_TRUE(all.dropped.empty());
  for (size_t i = 0; i < same->parameters().entries().size(); ++i)
    EXPECT_TRUE(same_bits(same->parameters().values(i), opened.model->parameters().values(i)))
        << same->parameters().entries()[i].name;

  const auto other = model_with([](TransformerConfig& config) {
    config.layers = 1;
    config.decoder_layers = 4;
  });
  const Tensor before = other->parameters().flat().copied();
  const LoadedByName some = load_by_name(*source.weights, source.table, other->parameters());
  EXPECT_EQ(some.fresh.size(), 26u);    // the fourth layer of the decoder
  EXPECT_EQ(some.dropped.size(), 16u);  // the second of the encoder
  for (const std::string& name : some.fresh) EXPECT_TRUE(name.starts_with("decoder.3.")) << name;
  for (const std::string& name : some.dropped) EXPECT_TRUE(name.starts_with("model.encoder.layers.1.")) << name;
  for (size_t i = 0; i < other->parameters().entries().size(); ++i)
    if (other->parameters().entries()[i].name.starts_with("decoder.3."))
      EXPECT_TRUE(same_bits(other->parameters().values(i), other->parameters().in(before, i)));
}

TEST(PretrainedWeights, OfAnotherShapeAreRefusedBeforeAnythingIsRead) {
  const std::string folder = kGolden + "marian";
  const PretrainedSource source = pretrained_source(folder);
  const PretrainedTranslation opened = open_pretrained_translation(folder);
  TranslationConfig config = opened.config;
  config.transformer().ffn = 30;
  const TranslationModel model(config, opened.tokenizers.sizes(), Rng(3));
  const Tensor before = model.parameters().flat().copied();
  try {
    load_by_name(*source.weights, source.table, model.parameters());
    FAIL() << "nothing was refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.message().in(Language::en),
              folder +
                  "/model.safetensors: \"model.encoder.layers.0.fc1.weight\" has shape (24, 16), but the model of "
                  "the configuration has (30, 16)");
  }
  EXPECT_TRUE(same_bits(model.parameters().flat(), before));
}

}  // namespace
}  // namespace qkv
