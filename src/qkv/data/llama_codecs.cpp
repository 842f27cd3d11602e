// Llama's tokenizers: SentencePiece's tokenizer.model, and llama2.c's tokenizer.bin.
#include <cmath>
#include <cstring>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/characters.h"
#include "qkv/data/pretrained_codecs.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/data/token_pipeline.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

const std::string kBlank = "\xE2\x96\x81";

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool found = text.compare(at, what.size(), what) == 0;
    out += found ? with : text.substr(at, 1);
    at += found ? what.size() : 1;
  }
  return out;
}

class SentencePieces : public TokenCodec {
 public:
  explicit SentencePieces(Subwords model) : model_(std::move(model)) {}

  void encode(std::string_view text, std::vector<EncodedToken>& out) const override {
    for (const TextPiece& piece : model_.encode_text_pieces(text))
      out.push_back({piece.id, 0, 0, piece.begin, piece.end});
    widen_to_characters(text, out);
    trim_blanks(text, out);
    number_by_blanks(text, out);
  }
  std::string decode(std::span<const int32_t> ids, bool special) const override {
    std::string out;
    std::vector<int32_t> run;  // of tokens that are text
    const auto finish = [&] {
      if (!run.empty()) out += model_.decode(run);
      run.clear();
    };
    for (const int32_t id : ids) {
      if (!is_special(id)) {
        run.push_back(id);
      } else if (special) {
        finish();
        out += piece(id);
      }
    }
    finish();
    return out;
  }
  const std::string& piece(int32_t id) const override { return model_.piece(id); }
  std::string shown(int32_t id) const override {
    const std::string text = replace_all(piece(id), kBlank, " ");
    return text.starts_with(' ') ? text.substr(1) : text;
  }
  std::optional<int32_t> id(std::string_view piece) const override { return model_.find(piece); }
  int32_t size() const override { return model_.size(); }
  bool is_special(int32_t id) const override { return model_.is_control(id) || id == model_.unk(); }

 private:
  Subwords model_;
};

// tokenizer.bin: the longest length, then for each token its score, its length and its bytes.
struct Llama2cFile {
  std::vector<std::string> pieces;
  std::vector<float> scores;

  Llama2cFile(const std::string& path, int32_t size) {
    const InputFile file(path);
    require(file.size() <= limits::kTokenizerBytes, "{path}: has {size} bytes, expected at most {most}",
            "path"_a = path, "size"_a = grouped(file.size()), "most"_a = grouped(limits::kTokenizerBytes));
    std::string bytes(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    size_t at = 0;
    const auto read = [&](void* to, size_t count) {
      require(count <= bytes.size() - at, "{path}: ends in token {id}, {size} bytes from its beginning",
              "path"_a = path, "id"_a = pieces.size(), "size"_a = grouped(bytes.size()));
      std::memcpy(to, bytes.data() + at, count);
      at += count;
    };
    int32_t longest = 0;
    read(&longest, 4);
    while (size > 0 ? pieces.size() < static_cast<size_t>(size) : at < bytes.size()) {
      float score = 0;
      int32_t length = 0;
      read(&score, 4);
      read(&length, 4);
      require(length > 0 && static_cast<size_t>(length) <= limits::kPieceBytes && std::isfinite(score) &&
                  pieces.size() < static_cast<size_t>(limits::kTokens),
              "{path}: token {id} has {length} bytes and score {score}, expected 1 to {most} bytes and a number",
              "path"_a = path, "id"_a = pieces.size(), "length"_a = length, "score"_a = score,
              "most"_a = limits::kPieceBytes);
      std::string piece(static_cast<size_t>(length), '\0');
      read(piece.data(), piece.size());
      pieces.push_back(std::move(piece));
      scores.push_back(score);
    }
    require(pieces.size() >= 259, "{path}: has {count} tokens, expected at least 259: <unk>, <s>, </s> and 256 bytes",
            "path"_a = path, "count"_a = pieces.size());
  }
};

// Its own spelling becomes that of SentencePiece: "<s>" for "\n<s>\n", "<0x0A>" for bytes, "▁" for a space.
void name_pieces(std::vector<std::string>& pieces, const std::string& path) {
  pieces[0] = "<unk>";
  pieces[1] = "<s>";
  pieces[2] = "</s>";
  for (size_t i = 3; i < pieces.size(); ++i) {
    if (i < 259) {
      pieces[i] = byte_piece(static_cast<unsigned char>(i - 3));
      continue;
    }
    check_utf8(pieces[i], tr("{path}: token {id}", "path"_a = path, "id"_a = i));
    pieces[i] = replace_all(pieces[i], " ", kBlank);
  }
}

}  // namespace

OpenedTokenizer open_sentence_pieces(const std::string& folder, const TokenizerConfig& config) {
  const Subwords model = Subwords::load_pretrained(folder + "/tokenizer.model");
  for (const AddedToken& token : config.added)
    require(token.id < model.size(),
            "{folder}: token {id}, {content}, was added to those of tokenizer.model; qkv reads such tokens from a "
            "tokenizer.json",
            "folder"_a = folder, "id"_a = token.id, "content"_a = printable(token.content));
  OpenedTokenizer out;
  out.files = {"tokenizer.model"};
  out.special = {.bos = model.bos(), .eos = model.eos(), .pad = model.pad(), .unk = model.unk()};
  std::vector<int32_t> before, after;
  if (config.flag("add_bos_token").value_or(true) && model.bos() >= 0) before.push_back(model.bos());
  if (config.flag("add_eos_token").value_or(false) && model.eos() >= 0) after.push_back(model.eos());
  out.tokens = surround(before, after, before, 0);
  out.kind = "SentencePiece";
  out.codec = std::make_unique<SentencePieces>(model);
  return out;
}

OpenedTokenizer open_llama2c_file(const std::string& path, int32_t size) {
  Llama2cFile file(path, size);
  name_pieces(file.pieces, path);
  PipelineParts parts;
  parts.table = std::make_unique<PieceTable>(std::move(file.pieces));
  BytePairOptions options;
  options.unk = 0;
  options.byte_fallback = true;
  parts.model = byte_pair_model(*parts.table, merges_of_scores(*parts.table, file.scores), options);
  parts.splitter = metaspace_splitter(kBlank, PrependScheme::always, false);
  parts.words_by_blanks = true;
  parts.trim_offsets = true;
  TokenDecoders steps;
  steps.push_back(replace_decoder(kBlank, " "));
  steps.push_back(byte_fallback_decoder());
  steps.push_back(fuse_decoder());
  steps.push_back(strip_decoder(" ", 1, 0));
  parts.decoder = decoder_sequence(std::move(steps));
  parts.hidden = {0, 1, 2};
  OpenedTokenizer out;
  out.special = {.bos = 1, .eos = 2, .unk = 0};
  out.tokens = surround(std::span(&out.special.bos, 1), {}, std::span(&out.special.bos, 1), 0);
  out.kind = "BPE with scores";
  out.codec = token_pipeline(std::move(parts));
  return out;
}

}  // namespace qkv
