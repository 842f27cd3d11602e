// Counting the n-grams of one segment: exact, without building strings.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace qkv {

using Symbols = std::vector<int32_t>;

/// Numbers for words, over all the given sentences: equal words have equal numbers.
std::vector<Symbols> word_numbers(std::span<const std::vector<std::string_view>> sentences);

/// The n-grams of several sequences, order by order. An n-gram's number is found from its last symbol and the number of
/// the (n-1)-gram before it.
class NgramCounter {
 public:
  explicit NgramCounter(std::vector<Symbols> sequences);

  /// Moves to the next order; the first call counts single symbols.
  void next_order();
  /// The number of different n-grams in all sequences, the count of n-gram `gram` in a sequence, and the number of
  /// n-grams of a sequence.
  size_t different() const { return counts_.size() / sequences_.size(); }
  int32_t count(size_t gram, size_t sequence) const { return counts_[gram * sequences_.size() + sequence]; }
  int64_t total(size_t sequence) const;

 private:
  int32_t number_of(uint64_t key);

  std::vector<Symbols> sequences_, grams_;  // grams_[s][i]: number of the n-gram that begins at i
  std::vector<int32_t> counts_;             // (different, sequences)
  std::vector<uint64_t> keys_;              // the table: open addressing, a power of two
  std::vector<int32_t> numbers_;            // -1: free
  int shift_ = 0;
  size_t order_ = 0;
};

}  // namespace qkv
