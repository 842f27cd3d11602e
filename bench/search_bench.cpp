// The cost of beam search besides the model: 64 sentences, beam 5, so 320 rows of scores of 10,000 tokens per step,
// from a model that costs nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "qkv/core/parallel.h"
#include "qkv/core/rng.h"
#include "qkv/decode/search.h"

namespace {

using namespace qkv;

constexpr int64_t kSentences = 64, kBeam = 5, kVocabulary = 10000, kSteps = 20;

/// Scores from a table; the end of a sentence is never likely.
class Table : public SourceStepModel {
 public:
  Table() : scores_(normal({2 * kSentences * kBeam, kVocabulary}, Rng(1), 0, 2)) {
    for (int64_t r = 0; r < scores_.size(0); ++r) scores_.mutable_ptr()[r * kVocabulary + 3] = -40;
  }
  void start(const Ids&, const Ids&) override { step_ = 0; }
  Tensor step(const Ids& tokens) override {
    const int64_t first = step_++ * 13 % (kSentences * kBeam);
    return scores_.part(first * kVocabulary, {tokens.numel(), kVocabulary});
  }
  void select(std::span<const int32_t>) override {}

 private:
  Tensor scores_;
  int64_t step_ = 0;
};

}  // namespace

int main() {
  Table model;
  Ids source = Ids::empty({kSentences, 1}), lengths = Ids::empty({kSentences});
  std::fill_n(source.mutable_ptr(), kSentences, 4);
  std::fill_n(lengths.mutable_ptr(), kSentences, 1);
  for (const int count : {1, 2}) {
    set_threads(count);
    double best = 1e9, sum = 0;
    for (int i = 0; i < 10; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto found = search(model, source, lengths, {.beam = kBeam, .max_length = kSteps});
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      sum = 0;
      for (const auto& f : found) sum += f[0].log_probability;
    }
    fmt::print("{} rows x {} scores, {} threads: {:.3f} ms per step (sum of log p {:.6f})\n", kSentences * kBeam,
               kVocabulary, count, 1e3 * best / kSteps, sum);
  }
}
