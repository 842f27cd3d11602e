// Unigrams: the tokens of a word whose scores have the largest sum, found from the left.
#include <algorithm>
#include <limits>

#include "qkv/data/characters.h"
#include "qkv/data/pair_map.h"
#include "qkv/data/token_models.h"

namespace qkv {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score, as SentencePiece has it

class Unigram : public TokenModel {
 public:
  Unigram(const PieceTable& table, std::vector<double> scores, const UnigramOptions& options)
      : table_(table), scores_(std::move(scores)), options_(options), nodes_(count_bytes(table)) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : scores_) lowest = std::min(lowest, score);
    unknown_ = lowest - kUnknownPenalty;
    for (int32_t id = 0; id < table.size(); ++id) add_path(table.piece(id), id);
  }

  void tokens(std::string_view word, std::vector<WordToken>& out) const override {
    const std::vector<Best> best = best_paths(word);
    std::vector<WordToken> reversed;
    for (size_t end = word.size(); end > 0;) {
      const Best& step = best[end];
      const WordToken token{step.id, static_cast<uint32_t>(step.begin), static_cast<uint32_t>(end)};
      end = step.begin;
      // Unknown characters in a row are one token.
      if (token.id == kUnknown && !reversed.empty() && reversed.back().id == kUnknown)
        reversed.back().begin = token.begin;
      else
        reversed.push_back(token);
    }
    for (auto token = reversed.rbegin(); token != reversed.rend(); ++token) finish(word, *token, out);
  }

 private:
  static constexpr int32_t kUnknown = -1;
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    size_t begin = 0;
    int32_t id = kUnknown;
    bool reached = false;
  };

  static size_t count_bytes(const PieceTable& table) {
    size_t bytes = 0;
    for (int32_t id = 0; id < table.size(); ++id) bytes += table.piece(id).size();
    return bytes;
  }

  // The trie: from a node, by a byte, to a node and its token.
  void add_path(std::string_view piece, int32_t id) {
    int32_t node = 0;
    for (const char c : piece) {
      const int32_t byte = static_cast<unsigned char>(c);
      if (nodes_.add(node, byte, {static_cast<int32_t>(ids_.size()), 0})) ids_.push_back(kUnknown);
      node = nodes_.find(node, byte)->first;
    }
    if (node > 0) ids_[static_cast<size_t>(node)] = id;
  }

  std::vector<Best> best_paths(std::string_view word) const {
    std::vector<Best> best(word.size() + 1);
    best[0] = {0, 0, kUnknown, true};
    for (size_t at = 0; at < word.size();) {
      const size_t letter = character(word, at).bytes;
      bool is_known = false;
      int32_t node = 0;
      const auto reach = [&](size_t end, int32_t id, double score) {
        if (best[end].reached && score <= best[end].score) return;
        best[end] = {score, at, id, true};
      };
      for (size_t end = at; end < word.size();) {
        const PairMap::Value* next = nodes_.find(node, static_cast<unsigned char>(word[end]));
        if (!next) break;
        node = next->first;
        ++end;
        const int32_t id = ids_[static_cast<size_t>(node)];
        if (id == kUnknown) continue;
        reach(end, id, best[at].score + scores_[static_cast<size_t>(id)]);
        is_known = is_known || end - at == letter;
      }
      if (!is_known) reach(at + letter, kUnknown, best[at].score + unknown_);
      at += letter;
    }
    return best;
  }

  void finish(std::string_view word, const WordToken& token, std::vector<WordToken>& out) const {
    if (token.id != kUnknown && token.id != options_.unk) return out.push_back(token);
    const std::string_view part = word.substr(token.begin, token.end - token.begin);
    if (options_.byte_fallback) {
      std::vector<WordToken> bytes;
      for (const char c : part)
        if (const auto id = table_.find(byte_piece(static_cast<unsigned char>(c))))
          bytes.push_back({*id, token.begin, token.end});
      if (bytes.size() == part.size()) return void(out.insert(out.end(), bytes.begin(), bytes.end()));
    }
    if (options_.unk >= 0) out.push_back({options_.unk, token.begin, token.end});
  }

  const PieceTable& table_;
  std::vector<double> scores_;
  UnigramOptions options_;
  PairMap nodes_;
  std::vector<int32_t> ids_ = {kUnknown};  // of every node
  double unknown_ = 0;
};

}  // namespace

std::unique_ptr<const TokenModel> unigram_model(const PieceTable& table, std::vector<double> scores,
                                                const UnigramOptions& options) {
  return std::make_unique<Unigram>(table, std::move(scores), options);
}

}  // namespace qkv
