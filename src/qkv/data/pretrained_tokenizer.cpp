// Opening folders, templates around texts, limits.
#include "qkv/data/pretrained_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/pretrained_codecs.h"
#include "qkv/data/text.h"
#include "qkv/data/tokenizer_json.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

// The usual names of special tokens, for folders that do not give them.
struct SpecialName {
  int32_t SpecialIds::*id;
  std::string_view name;
  std::vector<std::string_view> usual;
};

void find_special(OpenedTokenizer& out, const TokenizerConfig& config, const std::string& folder) {
  const SpecialName names[] = {{&SpecialIds::bos, "bos_token", {"<s>"}},
                               {&SpecialIds::eos, "eos_token", {"</s>"}},
                               {&SpecialIds::pad, "pad_token", {"[PAD]", "<pad>"}},
                               {&SpecialIds::unk, "unk_token", {"[UNK]", "<unk>"}},
                               {&SpecialIds::cls, "cls_token", {"[CLS]"}},
                               {&SpecialIds::sep, "sep_token", {"[SEP]"}},
                               {&SpecialIds::mask, "mask_token", {"[MASK]", "<mask>"}}};
  for (const SpecialName& name : names) {
    int32_t& id = out.special.*name.id;
    if (const std::string& piece = config.token(name.name); !piece.empty()) {
      const auto found = out.codec->id(piece);
      require(found.has_value(),
              "{folder}: {name} is {piece}, which the vocabulary does not have: are the tokenizer's files of another "
              "model?",
              "folder"_a = folder, "name"_a = name.name, "piece"_a = printable(piece));
      id = *found;
    }
    for (size_t i = 0; id < 0 && i < name.usual.size(); ++i) id = out.codec->id(name.usual[i]).value_or(-1);
  }
}

bool has(const std::string& folder, const char* name) { return std::filesystem::exists(folder + "/" + name); }

OpenedTokenizer open_files(const std::string& folder, std::string_view model_type, const TokenizerConfig& config) {
  if (model_type == "marian" || (has(folder, "source.spm") && !has(folder, "tokenizer.json")))
    return open_marian(folder, config);
  if (has(folder, "tokenizer.json")) return read_tokenizer_json(folder + "/tokenizer.json");
  if (has(folder, "vocab.txt")) return open_word_piece(folder, config);
  if (has(folder, "merges.txt")) return open_byte_pairs(folder, model_type, config);
  if (has(folder, "tokenizer.model")) return open_sentence_pieces(folder, config);
  if (has(folder, "tokenizer.bin")) {
    OpenedTokenizer out = open_llama2c_file(folder + "/tokenizer.bin", 0);
    out.files = {"tokenizer.bin"};
    return out;
  }
  throw Error(tr("{folder}: has no tokenizer", "folder"_a = folder),
              tr("qkv reads tokenizer.json, source.spm with vocab.json, vocab.txt, vocab.json with merges.txt, "
                 "tokenizer.model, and tokenizer.bin of llama2.c"));
}

void check_length(std::string_view text) {
  require(text.size() <= limits::kEncodedBytes, "the text has {size} bytes, expected at most {most}",
          "size"_a = grouped(text.size()), "most"_a = grouped(limits::kEncodedBytes));
  check_utf8(text, tr("the text"));
}

// How many tokens of each text stay: the longer one is cut first.
std::pair<size_t, size_t> kept(size_t first, size_t second, size_t most) {
  if (first + second <= most) return {first, second};
  const size_t half = most / 2;
  const size_t shorter = std::min({first, second, half});
  const size_t longer = most - shorter;
  // Where both are cut, the first has the smaller half, or the second if the first is the longer one.
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace

struct PretrainedTokenizer::State : OpenedTokenizer {
  explicit State(OpenedTokenizer opened) : OpenedTokenizer(std::move(opened)) {}

  void check_id(int32_t id) const {
    require(id >= 0 && id < codec->size(), "there is no token {id}, expected 0 to {most}", "id"_a = id,
            "most"_a = codec->size() - 1);
  }

  // Fills the template; tokens of the texts beyond the limit are counted and left out.
  EncodedText fill(const std::vector<TemplateItem>& items, std::vector<EncodedToken> first,
                   std::vector<EncodedToken> second, const EncodeOptions& options) const {
    EncodedText out;
    size_t added = 0;
    for (const TemplateItem& item : items) added += options.special && item.kind == TemplateItem::Kind::token;
    if (options.most > 0) {
      require(options.most > added, "a limit of {most} tokens leaves no room for text: {added} are special",
              "most"_a = options.most, "added"_a = added);
      const auto [a, b] = kept(first.size(), second.size(), options.most - added);
      out.left_out = first.size() - a + second.size() - b;
      first.resize(a);
      second.resize(b);
    }
    out.tokens.reserve(first.size() + second.size() + added);
    for (const TemplateItem& item : items) {
      if (item.kind == TemplateItem::Kind::token) {
        if (options.special) out.tokens.push_back({item.id, item.type, -1, 0, 0});
        continue;
      }
      for (EncodedToken token : item.kind == TemplateItem::Kind::first ? first : second) {
        token.text = item.type;
        out.tokens.push_back(token);
      }
    }
    return out;
  }
};

std::vector<int32_t> EncodedText::ids() const {
  std::vector<int32_t> out;
  for (const EncodedToken& token : tokens) out.push_back(token.id);
  return out;
}

std::vector<int32_t> EncodedText::types() const {
  std::vector<int32_t> out;
  for (const EncodedToken& token : tokens) out.push_back(token.text);
  return out;
}

PretrainedTokenizer PretrainedTokenizer::open(const std::string& folder, std::string_view model_type) {
  const TokenizerConfig config(folder);
  OpenedTokenizer opened = open_files(folder, model_type, config);
  find_special(opened, config, folder);
  opened.most = config.most;
  opened.files.insert(opened.files.end(), config.files.begin(), config.files.end());
  opened.folder = folder;
  return PretrainedTokenizer(std::make_shared<const State>(std::move(opened)));
}

bool PretrainedTokenizer::is_in(const std::string& folder) {
  const auto any = {"tokenizer.json", "vocab.txt", "merges.txt", "source.spm", "tokenizer.model", "tokenizer.bin"};
  return std::any_of(any.begin(), any.end(), [&](const char* name) { return has(folder, name); });
}

PretrainedTokenizer PretrainedTokenizer::open_llama2c(const std::string& path, int32_t size) {
  OpenedTokenizer opened = open_llama2c_file(path, size);
  opened.files = {std::filesystem::path(path).filename().string()};
  opened.folder = std::filesystem::path(path).parent_path().string();
  return PretrainedTokenizer(std::make_shared<const State>(std::move(opened)));
}

EncodedText PretrainedTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  check_length(text);
  std::vector<EncodedToken> tokens;
  state_->codec->encode(text, tokens);
  return state_->fill(state_->tokens.single, std::move(tokens), {}, options);
}

EncodedText PretrainedTokenizer::encode_target(std::string_view text, const EncodeOptions& options) const {
  check_length(text);
  std::vector<EncodedToken> tokens;
  state_->codec->encode_target(text, tokens);
  return state_->fill(state_->tokens.single, std::move(tokens), {}, options);
}

EncodedText PretrainedTokenizer::encode_pair(std::string_view first, std::string_view second,
                                             const EncodeOptions& options) const {
  check_length(first);
  check_length(second);
  std::vector<EncodedToken> a, b;
  state_->codec->encode(first, a);
  state_->codec->encode(second, b);
  return state_->fill(state_->tokens.pair, std::move(a), std::move(b), options);
}

std::string PretrainedTokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  for (const int32_t id : ids) state_->check_id(id);
  return state_->codec->decode(ids, options.special);
}

const std::string& PretrainedTokenizer::piece(int32_t id) const {
  state_->check_id(id);
  return state_->codec->piece(id);
}

std::string PretrainedTokenizer::shown(int32_t id) const {
  state_->check_id(id);
  return state_->codec->shown(id);
}

std::optional<int32_t> PretrainedTokenizer::id(std::string_view piece) const { return state_->codec->id(piece); }
int32_t PretrainedTokenizer::size() const { return state_->codec->size(); }
const SpecialIds& PretrainedTokenizer::special() const { return state_->special; }

bool PretrainedTokenizer::is_special(int32_t id) const {
  state_->check_id(id);
  return state_->codec->is_special(id);
}

size_t PretrainedTokenizer::most_tokens() const { return state_->most; }
const std::vector<std::string>& PretrainedTokenizer::languages() const { return state_->languages; }
const std::string& PretrainedTokenizer::kind() const { return state_->kind; }
const std::vector<std::string>& PretrainedTokenizer::files() const { return state_->files; }

void PretrainedTokenizer::save(const std::string& folder) const {
  make_folder(folder);
  for (const std::string& name : state_->files) {
    const InputFile file((std::filesystem::path(state_->folder) / name).string());
    std::string content(file.size(), '\0');
    file.read(0, std::as_writable_bytes(std::span(content)));
    write_file(folder + "/" + name, content);
  }
}

}  // namespace qkv
