// Text after a prompt, by a decoder that writes alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/decode/sample.h"
#include "qkv/tensor/run.h"

namespace QKV_API qkv {

/// A decoder with start, prefill, step and select (models/transformer_decoder.h) as a StepModel: one row, which has
/// read all of the prompt but its last token.
template <class Decoder>
class PromptedSteps : public StepModel {
 public:
  PromptedSteps(const Decoder& decoder, std::span<const int32_t> prompt) : decoder_(decoder), state_(decoder.start(1)) {
    check(!prompt.empty(), "[generate] the prompt is empty: it needs at least one token");
    const auto read = prompt.first(prompt.size() - 1);
    if (!read.empty()) decoder_.prefill(state_, Ids({1, std::ssize(read)}, read), {}, Run{});
  }
  Tensor step(const Ids& tokens) override { return decoder_.step(state_, tokens, Run{}); }
  void select(std::span<const int32_t> rows) override { decoder_.select(state_, rows); }

 private:
  const Decoder& decoder_;
  decltype(std::declval<const Decoder&>().start(1)) state_;
};

/// No token ends a text.
inline constexpr int32_t kNoEnd = -1;

/// What the decoder writes after the prompt: options.samples texts, each without the prompt and without the end.
/// Without a token that ends a text (options.end = kNoEnd), they have options.max_length tokens.
template <class Decoder>
std::vector<std::vector<int32_t>> generate(const Decoder& decoder, std::span<const int32_t> prompt,
                                           const SampleOptions& options) {
  PromptedSteps<Decoder> steps(decoder, prompt);
  const uint64_t number = 0;
  std::vector<std::vector<int32_t>> texts;
  const auto drawn = sample(steps, prompt.last(1), std::span(&number, 1), options);
  for (const Hypothesis& h : drawn.front()) texts.push_back(h.tokens);
  return texts;
}

}  // namespace qkv
