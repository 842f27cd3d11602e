// Marian: pieces by SentencePiece, their numbers by vocab.json.
#include <algorithm>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/data/pretrained_codecs.h"
#include "qkv/data/subwords.h"
#include "qkv/data/tokenizer_json.h"

namespace qkv {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";

// A SentencePiece model, and the numbers of its pieces in the vocabulary.
struct NumberedPieces {
  Subwords pieces;
  std::vector<int32_t> ids;  // -1: not in the vocabulary

  NumberedPieces(Subwords model, const PieceTable& table) : pieces(std::move(model)) {
    for (int32_t i = 0; i < pieces.size(); ++i) ids.push_back(table.find(pieces.piece(i)).value_or(-1));
  }
};

class Marian : public TokenCodec {
 public:
  Marian(std::unique_ptr<const PieceTable> table, const Subwords& source, const std::optional<Subwords>& target,
         std::vector<int32_t> special, int32_t unk)
      : table_(std::move(table)), source_(source, *table_), special_(std::move(special)), unk_(unk) {
    if (target) target_.emplace(*target, *table_);
  }

  void encode(std::string_view text, std::vector<EncodedToken>& out) const override {
    size_t code = 0;  // the length of ">>fra<<" at the beginning
    if (const size_t end = text.find("<<"); text.starts_with(">>") && end != std::string_view::npos) code = end + 2;
    if (code > 0) out.push_back({table_->find(text.substr(0, code)).value_or(unk_), 0, 0, 0, code});
    cut(source_, text, code, out);
  }

  void encode_target(std::string_view text, std::vector<EncodedToken>& out) const override {
    if (target_)
      cut(*target_, text, 0, out);
    else
      cut_by_vocabulary(text, out);
  }

  std::string decode(std::span<const int32_t> ids, bool special) const override {
    std::string out;
    for (const int32_t id : ids)
      if (special || !is_special(id)) out += with_spaces(piece(id));
    const size_t begin = std::min(out.find_first_not_of(' '), out.size());
    return out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
  }

  const std::string& piece(int32_t id) const override { return table_->piece(id); }
  std::string shown(int32_t id) const override {
    const std::string text = with_spaces(piece(id));
    return text.starts_with(' ') ? text.substr(1) : text;
  }
  std::optional<int32_t> id(std::string_view piece) const override { return table_->find(piece); }
  int32_t size() const override { return table_->size(); }
  bool is_special(int32_t id) const override {
    return std::find(special_.begin(), special_.end(), id) != special_.end();
  }

 private:
  void cut(const NumberedPieces& model, std::string_view text, size_t from, std::vector<EncodedToken>& out) const {
    for (const TextPiece& piece : model.pieces.encode_text_pieces(text.substr(from))) {
      // Characters that the model does not know may still be in the vocabulary.
      int32_t id = model.ids[static_cast<size_t>(piece.id)];
      if (piece.id == model.pieces.unk()) id = table_->find(piece.text).value_or(-1);
      out.push_back({id < 0 ? unk_ : id, 0, 0, from + piece.begin, from + piece.end});
    }
    trim_blanks(text, out);
    number_by_blanks(text, out);
  }

  // Without the target's model: always the longest piece of the vocabulary. source.spm would cut a text of the other
  // language into letters.
  void cut_by_vocabulary(std::string_view text, std::vector<EncodedToken>& out) const {
    std::string marked(kBlank);  // as SentencePiece sees the text, and which byte of it each of its bytes is
    std::vector<size_t> from(kBlank.size(), 0);
    for (size_t i = 0; i < text.size(); ++i) {
      const bool blank = text[i] == ' ';
      if (blank && marked.ends_with(kBlank)) continue;
      if (blank)
        marked += kBlank;
      else
        marked += text[i];
      from.resize(marked.size(), i);
    }
    from.push_back(text.size());
    if (marked.ends_with(kBlank)) marked.resize(marked.size() - kBlank.size());
    for (size_t at = 0; at < marked.size();) {
      std::optional<int32_t> id;
      size_t length = std::min(table_->longest(), marked.size() - at);
      for (; length > 0 && !id; length -= id ? 0 : 1) id = table_->find(std::string_view(marked).substr(at, length));
      if (!id)  // a character that no piece has
        for (length = 1; at + length < marked.size() && (marked[at + length] & 0xC0) == 0x80;) ++length;
      out.push_back({id.value_or(unk_), 0, 0, from[at], from[at + length]});
      at += length;
    }
    trim_blanks(text, out);
    number_by_blanks(text, out);
  }

  static std::string with_spaces(const std::string& piece) {
    std::string out;
    for (size_t at = 0; at < piece.size();) {
      const bool blank = piece.compare(at, kBlank.size(), kBlank) == 0;
      out += blank ? ' ' : piece[at];
      at += blank ? kBlank.size() : 1;
    }
    return out;
  }

  std::unique_ptr<const PieceTable> table_;
  NumberedPieces source_;
  std::optional<NumberedPieces> target_;
  std::vector<int32_t> special_;
  int32_t unk_;
};

// The pieces of CTranslate2's list, in their order; it has no <pad>, which comes last.
std::unique_ptr<const PieceTable> read_list(const JsonValue& list) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < list.size(); ++i) pieces.push_back(list.item(i).text());
  pieces.emplace_back("<pad>");
  return std::make_unique<const PieceTable>(std::move(pieces));
}

}  // namespace

OpenedTokenizer open_marian(const std::string& folder, const TokenizerConfig& config) {
  require(!config.flag("separate_vocabs").value_or(false),
          "{folder}: tokenizer_config.json asks for separate_vocabs, two vocabularies, which qkv does not read",
          "folder"_a = folder);
  OpenedTokenizer out;
  const auto is_there = [&](const std::string& name) { return std::filesystem::exists(folder + "/" + name); };
  const bool listed = !is_there("vocab.json") && is_there("shared_vocabulary.json");  // by CTranslate2
  out.files = {is_there("source.spm") || !listed ? "source.spm" : "sentencepiece.model",
               listed ? "shared_vocabulary.json" : "vocab.json"};
  const std::string path = folder + "/" + out.files[1];
  const JsonFile vocabulary(path);
  auto table = listed ? read_list(vocabulary.root()) : read_table(vocabulary.root());
  const Subwords source = Subwords::load_pretrained(folder + "/" + out.files[0]);
  std::optional<Subwords> target;
  if (std::filesystem::exists(folder + "/target.spm")) {
    target = Subwords::load_pretrained(folder + "/target.spm");
    out.files.push_back("target.spm");
  }
  // A vocabulary of another model shares hardly a piece with this one.
  int32_t known = 0;
  for (int32_t i = 0; i < source.size(); ++i) known += table->find(source.piece(i)).has_value();
  require(known * 2 >= source.size(),
          "{path}: has {known} of the {count} pieces of {model}, expected at least half: is it of another model?",
          "path"_a = path, "known"_a = known, "count"_a = source.size(), "model"_a = out.files[0]);
  std::vector<int32_t> special;
  const auto token = [&](std::string_view name, const char* without) {
    const std::string piece = config.token(name).empty() ? without : config.token(name);
    const auto id = table->find(piece);
    require(id.has_value(), "{path}: has no {piece}, expected the {name}", "path"_a = path, "piece"_a = piece,
            "name"_a = name);
    special.push_back(*id);
    return *id;
  };
  out.special.eos = token("eos_token", "</s>");
  out.special.unk = token("unk_token", "<unk>");
  out.special.pad = token("pad_token", "<pad>");
  for (int32_t id = 0; id < table->size(); ++id)
    if (const std::string& piece = table->piece(id); piece.starts_with(">>") && piece.ends_with("<<"))
      out.languages.push_back(piece);
  out.tokens = surround({}, std::span(&out.special.eos, 1), {}, 0);
  out.kind = "SentencePiece with a vocabulary";
  out.codec = std::make_unique<Marian>(std::move(table), source, target, std::move(special), out.special.unk);
  return out;
}

}  // namespace qkv
