// N-gram numbers from one small hash table.
#include "qkv/eval/ngrams.h"

#include <algorithm>
#include <bit>

namespace qkv {

std::vector<Symbols> word_numbers(std::span<const std::vector<std::string_view>> sentences) {
  struct Place {
    std::string_view word;
    size_t sentence, at;
  };
  std::vector<Place> places;
  std::vector<Symbols> numbers;
  for (size_t s = 0; s < sentences.size(); ++s) {
    numbers.emplace_back(sentences[s].size());
    for (size_t i = 0; i < sentences[s].size(); ++i) places.push_back({sentences[s][i], s, i});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.word < b.word; });
  int32_t number = -1;
  for (size_t p = 0; p < places.size(); ++p) {
    if (p == 0 || places[p].word != places[p - 1].word) ++number;
    numbers[places[p].sentence][places[p].at] = number;
  }
  return numbers;
}

NgramCounter::NgramCounter(std::vector<Symbols> sequences) : sequences_(std::move(sequences)) {
  size_t symbols = 0;
  for (const Symbols& sequence : sequences_) {
    symbols += sequence.size();
    grams_.emplace_back(sequence.size(), 0);
  }
  const size_t slots = std::max<size_t>(16, std::bit_ceil(2 * symbols));
  shift_ = 64 - std::countr_zero(slots);
  keys_.resize(slots);
  numbers_.resize(slots);
}

int32_t NgramCounter::number_of(uint64_t key) {
  const size_t mask = keys_.size() - 1;
  for (size_t slot = (key * 0x9E3779B97F4A7C15) >> shift_;; slot = (slot + 1) & mask) {
    if (numbers_[slot] < 0) {
      keys_[slot] = key;
      numbers_[slot] = static_cast<int32_t>(different());
      counts_.resize(counts_.size() + sequences_.size(), 0);
      return numbers_[slot];
    }
    if (keys_[slot] == key) return numbers_[slot];
  }
}

void NgramCounter::next_order() {
  ++order_;
  counts_.clear();
  std::fill(numbers_.begin(), numbers_.end(), -1);
  for (size_t s = 0; s < sequences_.size(); ++s)
    for (size_t i = 0; i + order_ <= sequences_[s].size(); ++i) {
      const uint64_t before = static_cast<uint32_t>(grams_[s][i]),
                     last = static_cast<uint32_t>(sequences_[s][i + order_ - 1]);
      grams_[s][i] = number_of(before << 32 | last);
      ++counts_[static_cast<size_t>(grams_[s][i]) * sequences_.size() + s];
    }
}

int64_t NgramCounter::total(size_t sequence) const {
  const size_t length = sequences_[sequence].size();
  return length < order_ ? 0 : static_cast<int64_t>(length - order_ + 1);
}

}  // namespace qkv
