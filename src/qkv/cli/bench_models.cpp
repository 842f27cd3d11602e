// Lines of the speed table about whole models: training steps, and writing token by token.
#include "qkv/cli/bench.h"
#include "qkv/core/check.h"
#include "qkv/models/language_model.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/nn/init.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/loss.h"
#include "qkv/tasks/kinds.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {
namespace {

Ids cycling_ids(const Shape& shape, int32_t count) {
  Ids out = Ids::empty(shape);
  for (int64_t i = 0; i < out.numel(); ++i) out.mutable_ptr()[i] = static_cast<int32_t>(7 * i % count);
  return out;
}

// Teacher forcing: the sum of the losses of a shard's rows. `wanted` is (rows, n).
Loss sum_of_losses(const Tensor& features, const Linear& output, const Ids& wanted) {
  return {linear_cross_entropy(features, output.weight, output.bias, wanted, {.reduction = Reduction::sum}),
          static_cast<double>(wanted.numel())};
}

// The book's sizes: 64 pairs of 10 tokens.
Speed transformer_step() {
  constexpr int64_t kRows = 64, kTokens = 10;
  Transformer model({.hidden = 32, .ffn = 64, .heads = 4, .layers = 2}, {184, 201}, Rng(1));
  const Ids source = cycling_ids({kRows, kTokens}, 184), target = cycling_ids({kRows, kTokens}, 201);
  const double seconds =
      step_seconds(model, kRows, kRows * kTokens, [&](int64_t begin, int64_t end, const Run& run) -> Loss {
        const Shape shape{end - begin, kTokens};
        const Ids wanted = target.part(begin * kTokens, shape);
        return sum_of_losses(model.features(source.part(begin * kTokens, shape), {}, wanted, run), model.decoder.output,
                             wanted);
      });
  return {seconds, kRows * kTokens, "tokens/s"};
}

// nanoGPT's small model for a CPU: 4 layers, width 128.
LanguageModel small_language_model(int64_t context) {
  LanguageModelConfig config{.context = context};
  config.transformer.dropout = 0;
  return {config, 65, Rng(1)};
}

Speed language_step() {
  constexpr int64_t kRows = 12, kTokens = 64;
  LanguageModel model = small_language_model(kTokens);
  const Ids text = cycling_ids({kRows, kTokens}, 65);
  const double seconds =
      step_seconds(model, kRows, kRows * kTokens, [&](int64_t begin, int64_t end, const Run& run) -> Loss {
        const Ids ids = text.part(begin * kTokens, {end - begin, kTokens});
        return sum_of_losses(model.features(ids, run), model.output(), ids);
      });
  return {seconds, kRows * kTokens, "tokens/s"};
}

Speed writing() {
  constexpr int64_t kPrompt = 32, kWritten = 100;
  const LanguageModel model = small_language_model(kPrompt + kWritten);
  const Ids prompt = cycling_ids({1, kPrompt}, 65), token = cycling_ids({1}, 65);
  const double seconds = best_seconds([&] {
    DecoderState state = model.single->start(1);
    model.single->prefill(state, prompt, {}, {});
    for (int64_t i = 0; i < kWritten; ++i) model.single->step(state, token, {});
  });
  return {seconds / kWritten, 1, "tokens/s"};
}

// The sizes of the preset vit.
Speed vision_step() {
  constexpr int64_t kRows = 64, kSide = 28;
  VisionTransformer model({.patch = 4, .hidden = 64, .ffn = 128, .heads = 4, .layers = 4}, {1, kSide, kSide}, 10,
                          Rng(1));
  const Tensor images = normal({kRows, 1, kSide, kSide}, Rng(2));
  const Ids labels = cycling_ids({kRows}, 10);
  const double seconds = step_seconds(model, kRows, kRows, [&](int64_t begin, int64_t end, const Run& run) -> Loss {
    const Tensor part = images.part(begin * kSide * kSide, {end - begin, 1, kSide, kSide});
    return {cross_entropy(model.logits(part, run), labels.part(begin, {end - begin}), {.reduction = Reduction::sum}),
            static_cast<double>(end - begin)};
  });
  return {seconds, kRows, "images/s"};
}

}  // namespace

std::vector<BenchLine> model_lines() {
  return {{tr("Transformer, the book's, training step of 64 pairs"), transformer_step},
          {tr("language model, 4 layers of 128, step of 12 x 64 tokens"), language_step},
          {tr("language model, 4 layers of 128, writing a token"), writing},
          {tr("vision Transformer, 28 x 28, training step of 64"), vision_step}};
}

namespace {

std::vector<BenchLine> translation_lines(const std::string& folder) {
  constexpr int64_t kSentences = 8, kTokens = 16;
  const auto model = std::make_shared<const Translator>(folder);
  const auto writing = [model](int64_t sentences) -> Speed {
    const Tokenizer &source = model->tokenizers().source, &target = model->tokenizers().target;
    const auto texts = [&](const Tokenizer& side, int32_t first) {
      std::vector<int32_t> one;
      for (int32_t i = 0; i + 1 < kTokens; ++i) one.push_back((first + 7 * i) % side.size());
      one.push_back(side.eos());
      return std::vector<std::vector<int32_t>>(static_cast<size_t>(sentences), one);
    };
    const double seconds = best_seconds(
        [&] { model->force_ids(texts(source, 3), texts(target, 5), {.rows = sentences, .keep_attention = false}); });
    return {seconds, static_cast<double>(sentences * kTokens), "tokens/s"};
  };
  return {{tr("opening {folder}", "folder"_a = folder),
           [folder]() -> Speed { return {best_seconds([&] { const Translator opened(folder); })}; }},
          {tr("one sentence of {tokens} tokens, read and written", "tokens"_a = kTokens), [=] { return writing(1); }},
          {tr("{count} sentences of {tokens} tokens, read and written", "count"_a = kSentences, "tokens"_a = kTokens),
           [=] { return writing(kSentences); }}};
}

std::vector<BenchLine> language_lines(const std::string& folder) {
  const auto model = std::make_shared<const LanguageGenerator>(folder);
  const int64_t context = model->config().model.context;
  const int64_t prompt = std::max<int64_t>(1, std::min<int64_t>(context / 2, 128)),
                written = std::max<int64_t>(1, std::min<int64_t>(context / 2, 32));
  require(model->objective() == LanguageObjective::causal,
          "{folder}: fills gaps; only models that continue a text are measured", "folder"_a = folder);
  const auto ids = [model](int64_t count) { return cycling_ids({1, count}, model->tokenizer().size()); };
  return {{tr("opening {folder}", "folder"_a = folder),
           [folder]() -> Speed { return {best_seconds([&] { const LanguageGenerator opened(folder); })}; }},
          {tr("reading {tokens} tokens", "tokens"_a = prompt),
           [=]() -> Speed {
             const Ids text = ids(prompt);
             const double seconds = best_seconds([&] {
               DecoderState state = model->model().single->start(1);
               model->model().single->prefill(state, text, {}, {});
             });
             return {seconds, static_cast<double>(prompt), "tokens/s"};
           }},
          {tr("writing a token after {tokens}", "tokens"_a = prompt), [=]() -> Speed {
             const Ids text = ids(prompt), token = ids(1).viewed({1});
             const auto read = [&] {
               DecoderState state = model->model().single->start(1);
               model->model().single->prefill(state, text, {}, {});
               return state;
             };
             const double before = best_seconds([&] { read(); }), all = best_seconds([&] {
                                                                    DecoderState state = read();
                                                                    for (int64_t i = 0; i < written; ++i)
                                                                      model->model().single->step(state, token, {});
                                                                  });
             return {std::max(all - before, 1e-9) / static_cast<double>(written), 1, "tokens/s"};
           }}};
}

}  // namespace

std::vector<BenchLine> model_lines(const std::string& folder) {
  switch (run_task(folder)) {
    case TaskKind::translation:
      return translation_lines(folder);
    case TaskKind::language:
      return language_lines(folder);
    case TaskKind::vision:
    case TaskKind::encoding:
      break;
  }
  refuse("{folder}: holds {what}; translation and language models are measured", "folder"_a = folder,
         "what"_a = facts_of(run_task(folder)).model);
}

}  // namespace qkv::cli
