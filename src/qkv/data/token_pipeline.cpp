// A text through the parts of a tokenizer, and back.
#include "qkv/data/token_pipeline.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/data/characters.h"

namespace qkv {
namespace {

class Pipeline : public TokenCodec {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
    std::vector<AddedToken> raw, normal;
    int32_t size = parts_.table->size();
    for (const AddedToken& token : parts_.added) size = std::max(size, token.id + 1);
    pieces_.resize(static_cast<size_t>(size));
    special_.resize(static_cast<size_t>(size));
    for (int32_t id = 0; id < parts_.table->size(); ++id) pieces_[static_cast<size_t>(id)] = parts_.table->piece(id);
    for (AddedToken token : parts_.added) {
      if (token.normalized && parts_.normalizer) token.content = parts_.normalizer->applied(token.content);
      pieces_[static_cast<size_t>(token.id)] = token.content;
      special_[static_cast<size_t>(token.id)] = token.special;
      (token.normalized ? normal : raw).push_back(token);
    }
    for (const int32_t id : parts_.hidden) special_[static_cast<size_t>(id)] = true;
    raw_ = AddedTokens(std::move(raw));
    normal_ = AddedTokens(std::move(normal));
  }

  void encode(std::string_view text, std::vector<EncodedToken>& out) const override {
    int32_t words = 0;
    for (const AddedPart& part : raw_.split(text)) {
      if (part.id >= 0) {
        out.push_back({part.id, 0, words++, part.bytes.begin, part.bytes.end});
        continue;
      }
      AlignedText changed(text.substr(part.bytes.begin, part.bytes.end - part.bytes.begin), part.bytes.begin);
      if (parts_.normalizer) parts_.normalizer->apply(changed);
      for (const AddedPart& inner : normal_.split(changed.text())) {
        const Range source = changed.source(inner.bytes);
        if (inner.id >= 0)
          out.push_back({inner.id, 0, words++, source.begin, source.end});
        else
          encode_part(changed.part(inner.bytes), part.bytes.begin + inner.bytes.begin == 0, words, out);
      }
    }
    widen_to_characters(text, out);
    if (parts_.words_by_blanks) number_by_blanks(text, out);
    if (parts_.trim_offsets) trim_blanks(text, out);
  }

  std::string decode(std::span<const int32_t> ids, bool special) const override {
    std::vector<std::string> pieces;
    for (const int32_t id : ids)
      if (special || !is_special(id)) pieces.push_back(piece(id));
    if (pieces.empty()) return {};
    parts_.decoder->apply(pieces);
    std::string out;
    for (const std::string& piece : pieces) out += piece;
    return out;
  }

  std::string shown(int32_t id) const override {
    if (is_special(id)) return piece(id);
    // After another piece, so that what is done at the beginning of a text is not done here.
    std::vector<std::string> pieces = {"x", piece(id)};
    parts_.decoder->apply(pieces);
    std::string out;
    for (const std::string& piece : pieces) out += piece;
    return out.starts_with('x') ? out.substr(1) : out;
  }

  const std::string& piece(int32_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  int32_t size() const override { return static_cast<int32_t>(pieces_.size()); }
  bool is_special(int32_t id) const override { return special_[static_cast<size_t>(id)]; }

  std::optional<int32_t> id(std::string_view piece) const override {
    for (const AddedToken& token : parts_.added)
      if (token.content == piece) return token.id;
    return parts_.table->find(piece);
  }

 private:
  void encode_part(AlignedText text, bool first, int32_t& count, std::vector<EncodedToken>& out) const {
    const auto size = static_cast<uint32_t>(text.text().size());
    Words words{std::move(text), {{0, size}}};
    if (parts_.splitter) parts_.splitter->apply(words, first);
    std::vector<WordToken> tokens;
    const std::string_view bytes = words.text.text();
    for (const Range word : words.words) {
      tokens.clear();
      parts_.model->tokens(bytes.substr(word.begin, word.end - word.begin), tokens);
      for (const WordToken& token : tokens) {
        const Range source = words.text.source({word.begin + token.begin, word.begin + token.end});
        out.push_back({token.id, 0, count, source.begin, source.end});
      }
      ++count;
    }
  }

  PipelineParts parts_;
  AddedTokens raw_, normal_;
  std::vector<std::string> pieces_;
  std::vector<bool> special_;
};

}  // namespace

std::unique_ptr<const TokenCodec> token_pipeline(PipelineParts parts) {
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace qkv
