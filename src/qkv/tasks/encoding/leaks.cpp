// Batches with other padding and other neighbours, and texts whose tokens change.
#include "qkv/tasks/encoding/leaks.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/data/shuffle.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kLongest = 24, kRoom = 3;

// States of rows, padded to the longest and `more` with tokens of the stream.
struct Batch {
  Tensor states;
  int64_t width = 0, length = 0;
  const float* row(int64_t b) const { return states.ptr() + b * length * width; }
};

Batch batch_of(const SentenceEncoder& encoder, std::span<const std::vector<int32_t>> texts, int64_t more,
               const Rng& rng) {
  size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  const int64_t n = std::min(static_cast<int64_t>(longest) + more, encoder.longest()), B = std::ssize(texts);
  std::vector<int32_t> ids(static_cast<size_t>(B * n)), lens;
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(rng.below(static_cast<uint64_t>(encoder.tokenizer().size()), i));
  for (int64_t b = 0; b < B; ++b) {
    const auto& text = texts[static_cast<size_t>(b)];
    std::copy(text.begin(), text.end(), ids.begin() + b * n);
    lens.push_back(static_cast<int32_t>(text.size()));
  }
  return {encoder.model().encoder(Ids({B, n}, ids), {}, Ids({B}, lens), Run{}), encoder.config().model.blocks.hidden,
          n};
}

void compare(const float* a, const float* b, int64_t count, EncoderLeakReport::Tried& out) {
  for (int64_t i = 0; i < count; ++i) {
    const double d = std::abs(double{a[i]} - b[i]);
    out.largest = std::isnan(d) || std::isnan(out.largest) ? std::nan("") : std::max(out.largest, d);
  }
  ++out.tried;
  out.compared += count;
}

}  // namespace

EncoderLeakReport encoder_leaks(const SentenceEncoder& encoder, std::span<const std::vector<int32_t>> texts,
                                const Rng& rng) {
  check(!texts.empty(), "[encoder_leaks] there are no texts");
  const TapePause pause;
  EncoderLeakReport out;
  const auto tokens = static_cast<uint64_t>(encoder.tokenizer().size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const Rng stream = rng.at(i);
    const auto n = std::ssize(texts[i]);
    const Batch alone = batch_of(encoder, texts.subspan(i, 1), 0, stream);
    if (n + kRoom <= encoder.longest()) {
      const Batch padded = batch_of(encoder, texts.subspan(i, 1), kRoom, stream.at("padding"));
      compare(alone.row(0), padded.row(0), n * alone.width, out.padding);
    }
    std::vector<std::vector<int32_t>> mates;
    for (const int64_t other : shuffled(std::ssize(texts), stream.at("order")))
      if (other != static_cast<int64_t>(i) && mates.size() < 7) mates.push_back(texts[static_cast<size_t>(other)]);
    const auto place = std::ssize(mates) / 2;
    mates.insert(mates.begin() + place, texts[i]);
    if (mates.size() == 1) mates.push_back({texts[i].front()});
    const Batch together = batch_of(encoder, mates, 0, stream.at("mates"));
    compare(alone.row(0), together.row(place), n * alone.width, out.mates);

    // Another token in one place changes the states of all others.
    if (n < 2) continue;
    std::vector<int32_t> changed = texts[i];
    const auto at = static_cast<size_t>(stream.below(static_cast<uint64_t>(n), 0));
    changed[at] = static_cast<int32_t>((static_cast<uint64_t>(changed[at]) + 1 + stream.below(tokens - 1, 1)) % tokens);
    const Batch other = batch_of(encoder, std::span(&changed, 1), 0, stream);
    ++out.controls;
    bool every = true;
    for (int64_t t = 0; t < n; ++t)
      every = every && !std::equal(alone.row(0) + t * alone.width, alone.row(0) + (t + 1) * alone.width,
                                   other.row(0) + t * alone.width);
    out.noticed += every;
  }
  return out;
}

std::vector<std::vector<int32_t>> random_encoder_texts(const SentenceEncoder& encoder, int64_t count, const Rng& rng) {
  const std::vector<int32_t> around = encoder.tokenizer().encode("").ids();
  const int64_t most = std::clamp<int64_t>(encoder.longest() - kRoom - std::ssize(around), 1, kLongest);
  std::vector<std::vector<int32_t>> out;
  uint64_t drawn = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> text;
    const auto n = 1 + rng.below(static_cast<uint64_t>(most), drawn++);
    for (uint64_t k = 0; k < n; ++k)
      text.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(encoder.tokenizer().size()), drawn++)));
    if (!around.empty()) text.insert(text.begin(), around.front());
    if (around.size() > 1) text.push_back(around.back());
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace qkv
