// Prompts with gaps, and the score of a text whose tokens are hidden one by one.
#include "qkv/tasks/encoding/hidden_words.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/models/attention_paths.h"
#include "qkv/ops/softmax.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kTokensAtOnce = 4096;  // of copies of a text

void need_words(const SentenceEncoder& encoder) {
  require(encoder.model().words.has_value() && encoder.tokenizer().special().mask >= 0,
          "this model does not fill gaps: its config.json names no head of words, such as BertForMaskedLM");
}

// With [MASK] as the tokenizer spells it.
std::string with_masks(const SentenceEncoder& encoder, std::string prompt) {
  const std::string& mask = encoder.tokenizer().piece(encoder.tokenizer().special().mask);
  if (mask == kGap) return prompt;
  for (size_t at = prompt.find(kGap); at != std::string::npos; at = prompt.find(kGap, at + mask.size()))
    prompt.replace(at, kGap.size(), mask);
  return prompt;
}

// Probabilities of all words at one token of states (B, n, width).
Tensor words_at(const SentenceEncoder& encoder, const Tensor& states, int64_t row, int64_t token) {
  const int64_t n = states.size(1), width = states.size(2);
  return (*encoder.model().words)(states.part((row * n + token) * width, {1, width}).detached());
}

std::vector<Candidate> likeliest(const SentenceEncoder& encoder, const Tensor& probabilities, int64_t count) {
  std::vector<Candidate> all;
  for (int32_t id = 0; id < encoder.tokenizer().size(); ++id)
    if (!encoder.tokenizer().is_special(id)) all.push_back({id, probabilities.ptr()[id]});
  require(!all.empty(), "the tokenizer has special tokens only");
  const auto kept = std::min(std::max<std::ptrdiff_t>(count, 1), std::ssize(all));
  std::partial_sort(all.begin(), all.begin() + kept, all.end(), [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  });
  all.resize(static_cast<size_t>(kept));
  return all;
}

}  // namespace

Filled fill_gaps(const SentenceEncoder& encoder, const std::string& prompt, int64_t candidates,
                 const AttentionEdits& edits) {
  need_words(encoder);
  const EncodedText read = encoder.read_whole(with_masks(encoder, prompt));
  std::vector<int32_t> ids = read.ids();
  const int32_t mask = encoder.tokenizer().special().mask;
  require(std::ranges::find(ids, mask) != ids.end(), "the prompt has no gap: write {gap} where a token is missing",
          "gap"_a = kGap);
  check_edits(edits, encoder.facts());
  const TapePause pause;
  EditProbe editor(edits);
  const Tensor states = encoder.states(read, {.probe = edits.empty() ? nullptr : &editor});
  Filled out;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (read.tokens[i].id != mask) continue;
    std::vector<Candidate> found =
        likeliest(encoder, softmax(words_at(encoder, states, 0, static_cast<int64_t>(i))), candidates);
    ids[i] = found.front().token;
    out.gaps.push_back(std::move(found));
  }
  out.text = encoder.tokenizer().decode(ids);
  return out;
}

TextScore hidden_score(const SentenceEncoder& encoder, const std::string& text, const Text& name) {
  need_words(encoder);
  const TapePause pause;
  const int32_t mask = encoder.tokenizer().special().mask, unknown = encoder.tokenizer().special().unk;
  TextScore out{.characters = count_characters(text)};
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const EncodedText read = encoder.tokenizer().encode(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    const int64_t n = std::ssize(read.tokens);
    require(n <= encoder.longest(), "{name}: line {line} has {tokens} tokens, but the model reads {context} at once",
            "name"_a = name, "line"_a = number + 1, "tokens"_a = n, "context"_a = encoder.longest());
    std::vector<int64_t> asked;
    for (int64_t i = 0; i < n; ++i)
      if (read.tokens[static_cast<size_t>(i)].word >= 0) asked.push_back(i);
    const std::vector<int32_t> ids = read.ids(), types = read.types();
    const int64_t rows = std::max<int64_t>(1, kTokensAtOnce / std::max<int64_t>(n, 1));
    for (int64_t first = 0; first < std::ssize(asked); first += rows) {
      const int64_t B = std::min(rows, std::ssize(asked) - first);
      std::vector<int32_t> all, kinds;
      for (int64_t b = 0; b < B; ++b) {
        all.insert(all.end(), ids.begin(), ids.end());
        kinds.insert(kinds.end(), types.begin(), types.end());
        all[static_cast<size_t>(b * n + asked[static_cast<size_t>(first + b)])] = mask;
      }
      const Tensor states = encoder.model().encoder(Ids({B, n}, all), Ids({B, n}, kinds), {}, Run{});
      for (int64_t b = 0; b < B; ++b) {
        const int64_t place = asked[static_cast<size_t>(first + b)];
        const int32_t token = ids[static_cast<size_t>(place)];
        out.nats -= double{log_softmax(words_at(encoder, states, b, place)).ptr()[token]};
        out.unknown += token == unknown;
      }
    }
    out.scored += static_cast<double>(asked.size());
    out.tokens += std::ssize(asked);
  }
  require(out.tokens > 0, "{name}: has no token", "name"_a = name);
  return out;
}

}  // namespace qkv
