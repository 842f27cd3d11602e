// Byte-pair encoding: the best merge first, from the left; a heap of the possible merges keeps long words fast.
#include <algorithm>
#include <array>
#include <functional>
#include <queue>

#include "qkv/data/characters.h"
#include "qkv/data/pair_map.h"
#include "qkv/data/token_models.h"

namespace qkv {
namespace {

constexpr int32_t kNone = -1, kMerged = -2;

// A part of a word, and its neighbours.
struct Symbol {
  int32_t id;
  uint32_t begin, end;
  int32_t previous, next;  // previous: kMerged once it has become part of the one before
};

struct Candidate {
  int32_t rank;
  int32_t at;      // of the left symbol
  int32_t merged;  // into this token
  int32_t next;    // the right symbol
  bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

class BytePairs : public TokenModel {
 public:
  BytePairs(const PieceTable& table, std::span<const Merge> merges, const BytePairOptions& options)
      : table_(table), options_(options), merges_(merges.size()) {
    for (const Merge& merge : merges) merges_.add(merge.left, merge.right, {merge.rank, merge.merged});
    for (int b = 0; b < 256; ++b) {
      const auto byte = static_cast<unsigned char>(b);
      bytes_[static_cast<size_t>(b)] = table.find(options.bytes ? byte_sign(byte) : byte_piece(byte)).value_or(kNone);
    }
    if (options.bytes && options.whole_words) read_whole_words();
  }

  void tokens(std::string_view word, std::vector<WordToken>& out) const override {
    if (options_.whole_words)
      if (const auto id = options_.bytes ? whole_.find(word) : table_.find(word)) {
        out.push_back({*id, 0, static_cast<uint32_t>(word.size())});
        return;
      }
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    if (options_.bytes)
      add_bytes(word, symbols);
    else
      add_characters(word, symbols);
    if (symbols.size() > 24)
      merge_with_heap(symbols);
    else
      merge_few(symbols);
    for (const Symbol& symbol : symbols) out.push_back({symbol.id, symbol.begin, symbol.end});
  }

 private:
  void read_whole_words() {
    std::vector<std::string> words(static_cast<size_t>(table_.size()));
    for (int32_t id = 0; id < table_.size(); ++id)
      words[static_cast<size_t>(id)] = bytes_of_signs(table_.piece(id)).value_or("");
    whole_ = PieceTable(std::move(words));
  }

  void add(std::vector<Symbol>& symbols, int32_t id, size_t begin, size_t end) const {
    const auto at = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, static_cast<uint32_t>(begin), static_cast<uint32_t>(end), at - 1, at + 1});
  }

  void add_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
    bool fuses = false;
    for (size_t at = 0; at < word.size(); ++at) {
      const int32_t id = bytes_[static_cast<unsigned char>(word[at])];
      if (id == kNone)
        add_unknown(symbols, at, at + 1, fuses);
      else
        add(symbols, id, at, at + 1);
      fuses = id == kNone;
    }
  }

  void add_characters(std::string_view word, std::vector<Symbol>& symbols) const {
    bool fuses = false;  // whether the last character was unknown
    const bool plain = options_.prefix.empty() && options_.suffix.empty();
    for (size_t at = 0; at < word.size();) {
      const size_t end = at + character(word, at).bytes;
      const std::string_view letter = word.substr(at, end - at);
      std::string decorated;
      if (!plain) {
        decorated = at > 0 ? options_.prefix + std::string(letter) : std::string(letter);
        if (end == word.size()) decorated += options_.suffix;
      }
      const auto id = table_.find(plain ? letter : std::string_view(decorated));
      const bool unknown = !id && !add_fallback(word, at, end, symbols);
      if (id) add(symbols, *id, at, end);
      if (unknown) add_unknown(symbols, at, end, fuses);
      fuses = unknown;
      at = end;
    }
  }

  bool add_fallback(std::string_view word, size_t begin, size_t end, std::vector<Symbol>& symbols) const {
    if (!options_.byte_fallback) return false;
    for (size_t i = begin; i < end; ++i)
      if (bytes_[static_cast<unsigned char>(word[i])] == kNone) return false;
    for (size_t i = begin; i < end; ++i) add(symbols, bytes_[static_cast<unsigned char>(word[i])], begin, end);
    return true;
  }

  void add_unknown(std::vector<Symbol>& symbols, size_t begin, size_t end, bool fuses) const {
    if (options_.unk == kNone) return;
    if (fuses && options_.fuse_unk)
      symbols.back().end = static_cast<uint32_t>(end);
    else
      add(symbols, options_.unk, begin, end);
  }

  // For short words looking at all neighbours again is faster than a heap.
  void merge_few(std::vector<Symbol>& symbols) const {
    std::array<PairMap::Value, 24> merges;
    const auto look = [&](size_t i) {
      const PairMap::Value* merge = merges_.find(symbols[i].id, symbols[i + 1].id);
      merges[i] = merge ? *merge : PairMap::Value{INT32_MAX, 0};
    };
    size_t count = symbols.size();
    for (size_t i = 0; i + 1 < count; ++i) look(i);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i)
        if (merges[i].first < merges[best].first) best = i;
      if (merges[best].first == INT32_MAX) break;
      symbols[best].id = merges[best].second;
      symbols[best].end = symbols[best + 1].end;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      for (size_t i = best + 1; i + 2 < count; ++i) merges[i] = merges[i + 1];
      --count;
      if (best > 0) look(best - 1);
      if (best + 1 < count) look(best);
    }
  }

  void merge_with_heap(std::vector<Symbol>& symbols) const {
    const auto count = static_cast<int32_t>(symbols.size());
    symbols.back().next = kNone;
    const auto candidate = [&](int32_t at) -> std::optional<Candidate> {
      if (at < 0) return {};
      const int32_t next = symbols[static_cast<size_t>(at)].next;
      if (next == kNone) return {};
      const Symbol& right = symbols[static_cast<size_t>(next)];
      const PairMap::Value* merge = merges_.find(symbols[static_cast<size_t>(at)].id, right.id);
      if (!merge) return {};
      return Candidate{merge->first, at, merge->second, next};
    };
    std::vector<Candidate> found;
    for (int32_t i = 0; i + 1 < count; ++i)
      if (const auto c = candidate(i)) found.push_back(*c);
    std::priority_queue heap(std::greater<>(), std::move(found));
    while (!heap.empty()) {
      const Candidate best = heap.top();
      heap.pop();
      Symbol& left = symbols[static_cast<size_t>(best.at)];
      if (left.previous == kMerged || left.next != best.next) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      // The pair may have changed since: what is merged now must be what was asked for.
      const PairMap::Value* merge = merges_.find(left.id, right.id);
      if (!merge || merge->first != best.rank) continue;
      left.id = best.merged;
      left.end = right.end;
      left.next = right.next;
      if (right.next != kNone) symbols[static_cast<size_t>(right.next)].previous = best.at;
      right.previous = kMerged;
      if (const auto c = candidate(left.previous)) heap.push(*c);
      if (const auto c = candidate(best.at)) heap.push(*c);
    }
    std::erase_if(symbols, [](const Symbol& symbol) { return symbol.previous == kMerged; });
  }

  const PieceTable& table_;
  PieceTable whole_;
  BytePairOptions options_;
  PairMap merges_;
  std::array<int32_t, 256> bytes_;
};

}  // namespace

std::unique_ptr<const TokenModel> byte_pair_model(const PieceTable& table, std::span<const Merge> merges,
                                                  const BytePairOptions& options) {
  return std::make_unique<BytePairs>(table, merges, options);
}

std::vector<Merge> merges_of_scores(const PieceTable& table, std::span<const float> scores) {
  std::vector<Merge> merges;
  for (int32_t id = 0; id < table.size(); ++id) {
    const std::string_view piece = table.piece(id);
    for (size_t at = 0; at < piece.size();) {
      at += character(piece, at).bytes;
      const auto left = at < piece.size() ? table.find(piece.substr(0, at)) : std::nullopt;
      const auto right = left ? table.find(piece.substr(at)) : std::nullopt;
      if (right) merges.push_back({*left, *right, id, 0});
    }
  }
  const auto score = [&](const Merge& merge) { return scores[static_cast<size_t>(merge.merged)]; };
  std::stable_sort(merges.begin(), merges.end(), [&](const Merge& a, const Merge& b) { return score(a) > score(b); });
  for (size_t i = 1; i < merges.size(); ++i)
    merges[i].rank = merges[i - 1].rank + (score(merges[i]) < score(merges[i - 1]));
  return merges;
}

}  // namespace qkv
