// Marian folders: a tiny one against transformers, and the real OPUS-MT model where it is on the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/io/safetensors.h"
#include "qkv/ops/loss.h"
#include "qkv/tasks/attention_maps.h"
#include "qkv/tasks/pretrained/marian.h"
#include "qkv/tasks/translation/translator.h"
#include "support/models.h"
#include "support/near.h"

namespace qkv {
namespace {

const std::string kGolden = std::string(QKV_SOURCE_DIR) + "/tests/golden/pretrained/";

Ids row(const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); }

std::vector<int32_t> listed_ids(const SafetensorsFile& file, const std::string& name) {
  const Ids ids = file.array(name).to_ids(name);
  return {ids.data().begin(), ids.data().end()};
}

// By the largest element of `wanted`; the shapes of maps may name their batch.
void expect_near(const Tensor& found, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.numel(), wanted.numel());
  qkv_test::expect_near_largest(found.viewed(wanted.shape()), wanted, tolerance, "found");
}

class TinyMarian : public ::testing::Test {
 protected:
  const std::string folder = kGolden + "marian";
  const SafetensorsFile golden{kGolden + "marian.golden.safetensors"};
  std::string text(int i) const {
    std::ifstream in(kGolden + "marian.golden.json");
    return nlohmann::json::parse(in)[static_cast<size_t>(i)]["source"].get<std::string>();
  }
};

TEST_F(TinyMarian, StatesLogitsAndMapsAreThoseOfTransformers) {
  const MarianConfig config = read_marian_config(folder);
  const auto model = open_marian_model(folder, config);
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i) + ".";
    const auto source = listed_ids(golden, n + "source"), greedy = listed_ids(golden, n + "greedy");
    const std::vector<int32_t> read(greedy.begin(), greedy.end() - 1);
    const Ids lens({1}, {static_cast<int32_t>(source.size())});
    const Transformer& t = *model->transformer();
    expect_near(t.encoder(row(source), lens, qkv::Run{}), golden.tensor(n + "states"), 1e-5);
    expect_near(t.logits(row(source), lens, row(read), qkv::Run{}), golden.tensor(n + "logits"), 1e-5);
    const AttentionMaps maps = transformer_attention(t, row(source), lens, row(read)).weights;
    expect_near(maps.encoder, golden.tensor(n + "encoder"), 1e-5);
    expect_near(maps.decoder, golden.tensor(n + "decoder"), 1e-5);
    expect_near(maps.cross, golden.tensor(n + "cross"), 1e-5);
  }
}

TEST_F(TinyMarian, GreedySearchAndBeamFindWhatTransformersFinds) {
  const Translator translator(folder);
  EXPECT_EQ(translator.defaults().beam, 4);
  std::vector<std::string> texts;
  for (int i = 0; i < 4; ++i) texts.push_back(text(i));
  for (const bool greedy : {true, false}) {
    TranslateOptions options = translator.defaults();
    if (greedy) options.beam = 1;
    const auto found = translator.translate(texts, options);
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i) + ".";
      EXPECT_EQ(found[static_cast<size_t>(i)].source, listed_ids(golden, n + "source"));
      auto wanted = listed_ids(golden, n + (greedy ? "greedy" : "beam"));
      wanted.erase(wanted.begin());  // <pad>, with which it begins
      if (const auto end = std::ranges::find(wanted, 0); end != wanted.end()) wanted.erase(end, wanted.end());
      EXPECT_EQ(found[static_cast<size_t>(i)].hypotheses[0].tokens, wanted) << n << (greedy ? "greedy" : "beam");
    }
  }
}

TEST_F(TinyMarian, GradientsAreThoseOfPyTorch) {
  const MarianConfig config = read_marian_config(folder);
  const auto model = open_marian_model(folder, config);
  const Transformer& t = *model->transformer();
  const auto source = listed_ids(golden, "1.source"), all = listed_ids(golden, "2.greedy");
  const std::vector<int32_t> read(all.begin(), all.end() - 1), wanted(all.begin() + 1, all.end());
  Tape tape;
  const Tensor loss = cross_entropy(t.logits(row(source), {}, row(read), qkv::Run{}), row(wanted));
  EXPECT_NEAR(loss.item(), golden.tensor("loss").item(), 1e-5);
  tape.backward(loss);
  const auto near = [&](const Tensor& weight, const std::string& name) {
    SCOPED_TRACE(name);
    Tensor found = tape.grad(weight).copied(), wanted = golden.tensor("gradient." + name);
    if (name == "model.shared.weight")  // PyTorch keeps the gradient away from the embedding of <pad>
      for (Tensor* x : {&found, &wanted}) std::fill_n(x->mutable_ptr() + config.pad * x->size(1), x->size(1), 0.f);
    expect_near(found, wanted, 1e-5);
  };
  near(t.encoder.embedding.weight, "model.shared.weight");
  near(t.encoder.stack.blocks[0].self.to_q.weight, "model.encoder.layers.0.self_attn.q_proj.weight");
  near(t.decoder.stack.blocks[2].cross->to_v.bias, "model.decoder.layers.2.encoder_attn.v_proj.bias");
  near(t.decoder.stack.blocks[1].ffn.as<FeedForward>()->first.weight, "model.decoder.layers.1.fc1.weight");
  near(t.decoder.stack.blocks[1].ffn_norm.as<LayerNorm>()->gamma, "model.decoder.layers.1.final_layer_norm.weight");
}

// The real model, made into a folder, against golden files of transformers.
TEST(OpusMt, GreedyOutputsLogProbabilitiesAndMapsAreThoseOfTransformers) {
  const std::string folder = qkv_test::real_model("opus-mt-zh-en"),
                    made = qkv_test::model_golden("opus-mt-zh-en/golden.json");
  if (folder.empty() || made.empty()) GTEST_SKIP() << "opus-mt-zh-en is not in QKV_TEST_MODELS";
  std::ifstream in(made);
  const auto sentences = nlohmann::json::parse(in);
  const SafetensorsFile golden(qkv_test::model_golden("opus-mt-zh-en/golden.safetensors"));
  const Translator translator(folder);
  for (size_t i = 0; i < sentences.size(); ++i) {
    const auto& one = sentences[i];
    const auto source = one["src_ids"].get<std::vector<int32_t>>(),
               written = one["out_ids"].get<std::vector<int32_t>>();
    const std::vector<std::string> text{one["src"].get<std::string>()};
    TranslateOptions options = translator.defaults();
    options.beam = 1;
    const Translation found = translator.translate(text, options)[0];
    EXPECT_EQ(found.source, source);
    std::vector<int32_t> tokens = found.hypotheses[0].tokens;
    tokens.push_back(translator.tokenizers().target.eos());
    EXPECT_EQ(tokens, written);
    EXPECT_EQ(translator.text(found.hypotheses[0]), one["text"].get<std::string>());
    const auto forced = translator.force_ids({source}, {written});
    for (size_t j = 0; j < written.size(); ++j)
      EXPECT_NEAR(forced[0].forced.log_probabilities[j], one["logprobs"][j].get<double>(), 1e-4);
    std::vector<int32_t> read{translator.tokenizers().target.bos()};
    read.insert(read.end(), written.begin(), written.end() - 1);
    const AttentionMaps maps =
        transformer_attention(*translator.model().transformer(), row(source), {}, row(read)).weights;
    const std::string n = std::to_string(i) + ".";
    expect_near(maps.encoder, golden.tensor(n + "enc_self"), 1e-5);
    expect_near(maps.decoder, golden.tensor(n + "dec_self"), 1e-5);
    expect_near(maps.cross, golden.tensor(n + "cross"), 1e-5);
  }
}

}  // namespace
}  // namespace qkv
