// Folders with a plain vocabulary: BERT's vocab.txt, and vocab.json with merges.txt of GPT-2 and RoBERTa.
#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/data/pretrained_codecs.h"
#include "qkv/data/tokenizer_json.h"

namespace qkv {
namespace {

// The lines of a text, without "\r"; a line end at the end of the file begins no further one.
std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    if (out.back().ends_with('\r')) out.back().pop_back();
    at = end + 1;
  }
  return out;
}

// Adds a special token: the one that the folder names, or the usual one, if the vocabulary has it.
int32_t add_special(PipelineParts& parts, const TokenizerConfig& config, std::string_view name, const char* without) {
  const std::string piece = config.token(name).empty() ? without : config.token(name);
  const auto id = parts.table->find(piece);
  if (!id) return -1;
  const bool added =
      std::any_of(parts.added.begin(), parts.added.end(), [&](const AddedToken& token) { return token.id == *id; });
  if (added) return *id;
  AddedToken token;
  token.id = *id;
  token.content = piece;
  token.special = true;
  token.normalized = false;
  parts.added.push_back(token);
  return *id;
}

int32_t needed(int32_t id, const std::string& path, const char* name) {
  require(id >= 0, "{path}: has no {name}, which the model needs", "path"_a = path, "name"_a = name);
  return id;
}

void add_config_tokens(PipelineParts& parts, const TokenizerConfig& config, const std::string& path) {
  for (const AddedToken& token : config.added) {
    const auto other = parts.table->find(token.content);
    require(other ? *other == token.id : !parts.table->is_used(token.id),
            "{path}: does not agree with the added token {content}, number {id}: is it of another model?",
            "path"_a = path, "content"_a = token.content, "id"_a = token.id);
    parts.added.push_back(token);
  }
}

std::vector<Merge> read_merges(const std::string& path, const PieceTable& table) {
  const std::vector<std::string> rows = lines(read_whole_text(path, limits::kTokenizerBytes));
  std::vector<Merge> merges;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view row = rows[i];
    if (row.empty() || row.starts_with("#version")) continue;
    const size_t space = std::min(row.find(' '), row.size());
    const std::string left(row.substr(0, space)), right(row.substr(std::min(space + 1, row.size())));
    const auto a = table.find(left), b = table.find(right), merged = table.find(left + right);
    require(a && b && merged,
            "{path}: line {line}: expected two tokens of vocab.json that make a third, separated by a space",
            "path"_a = path, "line"_a = i + 1);
    merges.push_back({*a, *b, *merged, static_cast<int32_t>(i)});
  }
  return merges;
}

}  // namespace

OpenedTokenizer open_word_piece(const std::string& folder, const TokenizerConfig& config) {
  const std::string path = folder + "/vocab.txt";
  std::vector<std::string> pieces = lines(read_whole_text(path, limits::kTokenizerBytes));
  require(pieces.size() <= static_cast<size_t>(limits::kTokens), "{path}: has {count} lines, expected at most {most}",
          "path"_a = path, "count"_a = pieces.size(), "most"_a = limits::kTokens);
  OpenedTokenizer out;
  out.files = {"vocab.txt"};
  PipelineParts parts;
  parts.table = std::make_unique<PieceTable>(std::move(pieces));
  add_config_tokens(parts, config, path);
  out.special.unk = needed(add_special(parts, config, "unk_token", "[UNK]"), path, "[UNK]");
  out.special.cls = needed(add_special(parts, config, "cls_token", "[CLS]"), path, "[CLS]");
  out.special.sep = needed(add_special(parts, config, "sep_token", "[SEP]"), path, "[SEP]");
  out.special.pad = add_special(parts, config, "pad_token", "[PAD]");
  out.special.mask = add_special(parts, config, "mask_token", "[MASK]");
  BertRules rules;
  rules.lower = config.flag("do_lower_case").value_or(true);
  rules.strip_accents = config.flag("strip_accents").value_or(rules.lower);
  rules.cjk = config.flag("tokenize_chinese_chars").value_or(true);
  parts.normalizer = bert_normalizer(rules);
  parts.splitter = bert_splitter();
  parts.model = word_piece_model(*parts.table, {.unk = out.special.unk});
  parts.decoder = word_piece_decoder("##", true);
  const std::span sep(&out.special.sep, 1);
  out.tokens = surround(std::span(&out.special.cls, 1), sep, sep, 1);
  out.kind = "WordPiece";
  out.codec = token_pipeline(std::move(parts));
  return out;
}

OpenedTokenizer open_byte_pairs(const std::string& folder, std::string_view model_type, const TokenizerConfig& config) {
  const std::string path = folder + "/vocab.json";
  const JsonFile vocabulary(path);
  OpenedTokenizer out;
  out.files = {"vocab.json", "merges.txt"};
  PipelineParts parts;
  parts.table = read_table(vocabulary.root());
  BytePairOptions options;
  options.bytes = true;
  parts.model = byte_pair_model(*parts.table, read_merges(folder + "/merges.txt", *parts.table), options);
  parts.splitter = byte_level_splitter(config.flag("add_prefix_space").value_or(false), true);
  parts.decoder = byte_level_decoder();
  add_config_tokens(parts, config, path);
  const bool roberta = model_type == "roberta";
  SpecialIds& special = out.special;
  special.bos = add_special(parts, config, "bos_token", roberta ? "<s>" : "<|endoftext|>");
  special.eos = add_special(parts, config, "eos_token", roberta ? "</s>" : "<|endoftext|>");
  special.pad = add_special(parts, config, "pad_token", roberta ? "<pad>" : "");
  special.unk = add_special(parts, config, "unk_token", roberta ? "<unk>" : "<|endoftext|>");
  if (roberta) {
    special.cls = needed(add_special(parts, config, "cls_token", "<s>"), path, "<s>");
    special.sep = needed(add_special(parts, config, "sep_token", "</s>"), path, "</s>");
    special.mask = add_special(parts, config, "mask_token", "<mask>");
    for (AddedToken& token : parts.added)
      if (token.id == special.mask && config.added.empty()) token.lstrip = true;  // "a <mask>" has one space, not two
    const std::vector<int32_t> between(2, special.sep);
    out.tokens = surround(std::span(&special.cls, 1), std::span(&special.sep, 1), between, 0);
  } else if (config.flag("add_bos_token").value_or(false) && special.bos >= 0) {
    const std::span bos(&special.bos, 1);
    out.tokens = surround(bos, {}, bos, 0);
  }
  parts.trim_offsets = true;
  out.kind = "BPE of bytes";
  out.codec = token_pipeline(std::move(parts));
  return out;
}

}  // namespace qkv
