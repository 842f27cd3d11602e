// WordPiece (BERT): the longest piece first, from the beginning of a word.
#include <algorithm>

#include "qkv/data/characters.h"
#include "qkv/data/token_models.h"

namespace qkv {
namespace {

class WordPiece : public TokenModel {
 public:
  WordPiece(const PieceTable& table, const WordPieceOptions& options)
      : table_(table), inner_(inner_pieces(table, options.prefix)), options_(options) {}

  void tokens(std::string_view word, std::vector<WordToken>& out) const override {
    if (characters(word, options_.longest + 1) > options_.longest) return whole(word, out);
    const size_t before = out.size();
    for (size_t at = 0; at < word.size();) {
      const PieceTable& table = at == 0 ? table_ : inner_;
      size_t end = std::min(word.size(), at + table.longest());
      std::optional<int32_t> id;
      for (; end > at; --end) {
        if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80) continue;
        if ((id = table.find(word.substr(at, end - at)))) break;
      }
      if (!id) {
        out.resize(before);
        return whole(word, out);
      }
      out.push_back({*id, static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
      at = end;
    }
  }

 private:
  // The pieces that begin with the prefix, without it, at their own numbers.
  static PieceTable inner_pieces(const PieceTable& table, const std::string& prefix) {
    std::vector<std::string> pieces(static_cast<size_t>(table.size()));
    for (int32_t id = 0; id < table.size(); ++id)
      if (const std::string& piece = table.piece(id); piece.size() > prefix.size() && piece.starts_with(prefix))
        pieces[static_cast<size_t>(id)] = piece.substr(prefix.size());
    return PieceTable(std::move(pieces));
  }

  static size_t characters(std::string_view word, size_t most) {
    size_t count = 0;
    for (size_t at = 0; at < word.size() && count < most; ++at)
      count += (static_cast<unsigned char>(word[at]) & 0xc0) != 0x80;
    return count;
  }

  void whole(std::string_view word, std::vector<WordToken>& out) const {
    out.push_back({options_.unk, 0, static_cast<uint32_t>(word.size())});
  }

  const PieceTable& table_;
  PieceTable inner_;
  WordPieceOptions options_;
};

}  // namespace

std::unique_ptr<const TokenModel> word_piece_model(const PieceTable& table, const WordPieceOptions& options) {
  return std::make_unique<WordPiece>(table, options);
}

}  // namespace qkv
