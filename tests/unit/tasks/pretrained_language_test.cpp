// Language models of pretrained folders against what transformers computes: Llama (with shared key heads; in shards,
// tied with biases, and as llama2.c writes it) and GPT-2. tests/golden/make_pretrained.py makes the folders.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/io/safetensors.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tensor/tape.h"
#include "support/models.h"
#include "support/near.h"

namespace qkv {
namespace {

const std::string kGolden = std::string(QKV_SOURCE_DIR) + "/tests/golden/pretrained/";
constexpr int kLines = 4;

Ids row(const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); }

// A folder, and the golden file of the model that it holds.
struct Folder {
  std::string name, of;
};
void PrintTo(const Folder& folder, std::ostream* out) { *out << folder.name; }

class PretrainedLanguageModels : public ::testing::TestWithParam<Folder> {
 protected:
  const LanguageGenerator generator{kGolden + GetParam().name};
  const SafetensorsFile golden{kGolden + GetParam().of + ".golden.safetensors"};

  std::vector<int32_t> ids(const std::string& name) const {
    const Ids found = golden.array(name).to_ids(name);
    return {found.data().begin(), found.data().end()};
  }
  std::vector<std::string> texts(const char* key) const {
    std::ifstream in(kGolden + GetParam().of + ".golden.json");
    std::vector<std::string> out;
    for (const auto& one : nlohmann::json::parse(in)) out.push_back(one[key].get<std::string>());
    return out;
  }
  // By the largest element of `wanted`.
  void expect_near(const Tensor& found, const std::string& name) const {
    const Tensor wanted = golden.tensor(name);
    ASSERT_EQ(found.numel(), wanted.numel()) << name;
    qkv_test::expect_near_largest(found.viewed(wanted.shape()), wanted, 1e-5, name);
  }
};

TEST_P(PretrainedLanguageModels, StatesLogitsAndMapsAreThoseOfTransformers) {
  for (int i = 0; i < kLines; ++i) {
    const std::string n = std::to_string(i) + ".";
    const LanguageBatch batch{.read = row(ids(n + "ids")), .written = {}, .wanted = {}};
    const LanguageModel& model = generator.model();
    const Tensor states = model.features(batch.read, qkv::Run{});
    expect_near(states, n + "states");
    expect_near(model.output()(states), n + "logits");
    expect_near(language_attention(model, batch).weights.decoder, n + "decoder");
  }
}

TEST_P(PretrainedLanguageModels, TextsBecomeTheirTokensAndGreedyTextsAreThoseOfTransformers) {
  const std::vector<std::string> whole = texts("text"), prompts = texts("prompt");
  GenerateOptions options = generator.defaults();
  options.temperature = 0;
  options.max_tokens = 12;
  const std::vector<Continued> found = generator.generate(prompts, options);
  for (int i = 0; i < kLines; ++i) {
    const auto at = static_cast<size_t>(i);
    const std::string n = std::to_string(i) + ".";
    EXPECT_EQ(generator.tokenizer().encode(whole[at]), ids(n + "ids"));
    EXPECT_EQ(found[at].prompt, ids(n + "prompt"));
    EXPECT_EQ(found[at].texts[0].tokens, ids(n + "greedy")) << prompts[at];
    EXPECT_EQ(found[at].texts[0].end, TextEnd::end);
    EXPECT_EQ(prompts[at] + found[at].texts[0].text, whole[at]);
  }
}

TEST_P(PretrainedLanguageModels, APromptGivesTheSameTextAloneAndInABatch) {
  const std::vector<std::string> prompts = texts("prompt");
  GenerateOptions options = generator.defaults();
  options.temperature = 1;
  options.top_p = 0.95;
  options.max_tokens = 20;
  options.samples = 3;
  const std::vector<Continued> together = generator.generate(prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Continued alone = generator.generate(std::span(&prompts[i], 1), options)[0];
    for (size_t s = 0; s < 3; ++s) EXPECT_EQ(alone.texts[s].tokens, together[i].texts[s].tokens);
  }
}

// The loss of a step of fine-tuning, and the gradient of every weight that the golden file has.
TEST_P(PretrainedLanguageModels, GradientsOfAStepAreThoseOfPyTorch) {
  const LanguageModel& model = generator.model();
  const std::vector<int32_t> all = ids("loss.ids");
  const std::vector<int32_t> read(all.begin(), all.end() - 1), wanted(all.begin() + 1, all.end());
  Tape tape;
  const Tensor loss = cross_entropy(model.output()(model.features(row(read), qkv::Run{})), row(wanted));
  EXPECT_NEAR(loss.item(), golden.tensor("loss").item(), 1e-5);
  tape.backward(loss);
  const TransformerDecoder& decoder = *model.single;
  const auto near = [&](const Tensor& weight, const std::string& name) {
    SCOPED_TRACE(name);
    expect_near(tape.grad(weight), "gradient." + name);
  };
  size_t compared = 0;
  const bool gpt2 = GetParam().of == "gpt2";
  const std::string base = gpt2 ? "transformer." : "model.";
  near(decoder.embedding.weight, base + (gpt2 ? "wte.weight" : "embed_tokens.weight"));
  if (golden.has("gradient.lm_head.weight")) near(decoder.output.weight, "lm_head.weight");
  for (size_t i = 0; i < decoder.stack.blocks.size(); ++i, ++compared) {
    const TransformerBlock& block = decoder.stack.blocks[i];
    if (gpt2) {
      const std::string at = base + text("h.", i, ".");
      const auto fused = [&](const Tensor& q, const Tensor& k, const Tensor& v, int axis) {
        return concat({tape.grad(q), tape.grad(k), tape.grad(v)}, axis);
      };
      const auto& self = block.self;
      const Tensor weights = fused(self.to_q.weight, self.to_k.weight, self.to_v.weight, 0);
      expect_near(permute(weights, {1, 0}), "gradient." + at + "attn.c_attn.weight");
      expect_near(fused(self.to_q.bias, self.to_k.bias, self.to_v.bias, 0), "gradient." + at + "attn.c_attn.bias");
      expect_near(permute(tape.grad(self.to_out.weight), {1, 0}), "gradient." + at + "attn.c_proj.weight");
      const auto& ffn = *block.ffn.as<FeedForward>();
      expect_near(permute(tape.grad(ffn.first.weight), {1, 0}), "gradient." + at + "mlp.c_fc.weight");
      near(ffn.second.bias, at + "mlp.c_proj.bias");
      near(block.self_norm.as<LayerNorm>()->gamma, at + "ln_1.weight");
      near(block.ffn_norm.as<LayerNorm>()->beta, at + "ln_2.bias");
    } else {
      const std::string at = base + text("layers.", i, ".");
      if (GetParam().name != "llama2c") {  // which has other rows of these beside each other
        near(block.self.to_q.weight, at + "self_attn.q_proj.weight");
        near(block.self.to_k.weight, at + "self_attn.k_proj.weight");
      }
      near(block.self.to_v.weight, at + "self_attn.v_proj.weight");
      near(block.self.to_out.weight, at + "self_attn.o_proj.weight");
      const auto& ffn = *block.ffn.as<GatedFeedForward>();
      near(ffn.gate.weight, at + "mlp.gate_proj.weight");
      near(ffn.up.weight, at + "mlp.up_proj.weight");
      near(ffn.down.weight, at + "mlp.down_proj.weight");
      near(block.self_norm.as<RmsNorm>()->gamma, at + "input_layernorm.weight");
      near(block.ffn_norm.as<RmsNorm>()->gamma, at + "post_attention_layernorm.weight");
      if (!block.self.to_q.bias.defined()) continue;
      near(block.self.to_k.bias, at + "self_attn.k_proj.bias");
      near(ffn.gate.bias, at + "mlp.gate_proj.bias");
      near(ffn.down.bias, at + "mlp.down_proj.bias");
    }
  }
  EXPECT_EQ(compared, 3U);
}

INSTANTIATE_TEST_SUITE_P(Folders, PretrainedLanguageModels,
                         ::testing::Values(Folder{"llama", "llama"}, Folder{"llama_tied", "llama_tied"},
                                           Folder{"llama2c", "llama"}, Folder{"gpt2", "gpt2"}),
                         [](const auto& info) { return info.param.name; });

TEST(PretrainedLanguage, SettingsAreThoseOfTheFolder) {
  const LanguageGenerator llama(kGolden + "llama"), tied(kGolden + "llama_tied"), c(kGolden + "llama2c"),
      gpt2(kGolden + "gpt2");
  const auto model = [](const LanguageGenerator& g) { return g.config().model.transformer; };
  EXPECT_EQ(model(llama).key_head_count(), 2);
  EXPECT_EQ(model(llama).rotary_pairs, RotaryPairs::halves);
  EXPECT_EQ(model(llama).norm_eps, 1e-5f);
  EXPECT_FALSE(model(llama).tied);
  EXPECT_EQ(model(tied).rotary_base, 500);
  EXPECT_TRUE(model(tied).tied);
  EXPECT_EQ(model(c).rotary_pairs, RotaryPairs::neighbours);
  EXPECT_EQ(c.defaults().temperature, 1);
  EXPECT_EQ(c.defaults().top_p, 0.9);
  EXPECT_EQ(llama.defaults().temperature, 0);
  EXPECT_EQ(model(gpt2).activation, Activation::gelu_tanh);
  EXPECT_EQ(gpt2.config().model.context, 32);
}

TEST(PretrainedLanguage, PiecesOfATextThatIsBeingWrittenGiveTheWholeText) {
  for (const char* name : {"llama", "gpt2"}) {
    const LanguageGenerator generator(kGolden + name);
    const TextTokenizer& tokenizer = generator.tokenizer();
    const std::string text = "the cat sees 猫 and a déjà vu, twice\n" + std::string(60, 'z') + " 🙂 end";
    const std::vector<int32_t> ids = tokenizer.encode(text);
    for (size_t prompt = 0; prompt < ids.size(); prompt += 3) {
      if (!text.starts_with(tokenizer.decode(std::span(ids).first(prompt)))) continue;  // it ends inside a character
      TextStream stream(tokenizer, std::span(ids).first(prompt));
      std::string written;
      for (size_t i = prompt; i < ids.size(); ++i) {
        const std::string piece = stream.add(ids[i]);
        EXPECT_EQ(valid_utf8(piece), piece);
        written += piece;
      }
      written += stream.end();
      EXPECT_TRUE(text.ends_with(written)) << name << " " << prompt << ": " << written;
      if (prompt == 0) EXPECT_EQ(written, text);
    }
  }
}

// The real model, as llama2.c has it, against the tokens that transformers writes with the same weights.
TEST(Stories15M, TwoHundredGreedyTokensAreThoseOfTransformers) {
  const std::string folder = qkv_test::real_model("stories15M");
  if (folder.empty()) GTEST_SKIP() << "stories15M is not in QKV_TEST_MODELS";
  std::ifstream in(kGolden + "stories15M.golden.json");
  const auto golden = nlohmann::json::parse(in);
  const LanguageGenerator generator(folder);
  GenerateOptions options = generator.defaults();
  options.temperature = 0;
  options.max_tokens = 200;
  const std::vector<std::string> prompt{golden["prompt"].get<std::string>()};
  EXPECT_EQ(generator.generate(prompt, options)[0].texts[0].tokens, golden["tokens"].get<std::vector<int32_t>>());
}

}  // namespace
}  // namespace qkv
