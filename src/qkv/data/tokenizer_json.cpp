// Models, added tokens and post-processors of tokenizer.json, and the whole file.
#include "qkv/data/tokenizer_json.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/limits.h"

namespace qkv {
namespace {

constexpr int32_t kMostIds = limits::kTokens;

// The number of a token that the vocabulary must have.
int32_t id_of(const PieceTable& table, const JsonValue& piece) {
  const auto id = table.find(piece.text());
  if (!id) piece.refuse_value(tr("a token of the vocabulary"));
  return *id;
}

std::string read_word_piece(const JsonValue& model, PipelineParts& parts) {
  parts.table = read_table(model["vocab"]);
  WordPieceOptions options;
  options.unk = id_of(*parts.table, model["unk_token"]);
  options.prefix = model["continuing_subword_prefix"].text_or("##");
  if (const JsonValue most = model["max_input_chars_per_word"]; most.is_given())
    options.longest = static_cast<size_t>(most.whole(1, 10'000));
  parts.model = word_piece_model(*parts.table, options);
  return "WordPiece";
}

// "a b", or ["a", "b"].
std::pair<std::string, std::string> read_pair(const JsonValue& merge) {
  if (merge.is_list() && merge.size() == 2) return {merge.item(0).text(), merge.item(1).text()};
  const std::string line = merge.is_text() ? merge.text() : "";
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
    merge.refuse_value(tr("two tokens"));
  return {line.substr(0, space), line.substr(space + 1)};
}

std::string read_byte_pairs(const JsonValue& model, bool bytes, PipelineParts& parts) {
  if (const JsonValue dropout = model["dropout"]; dropout.is_given() && dropout.number() != 0)
    dropout.refuse_value(tr("0, because tokens must not depend on chance"));
  parts.table = read_table(model["vocab"]);
  BytePairOptions options;
  options.bytes = bytes;
  options.prefix = model["continuing_subword_prefix"].text_or("");
  options.suffix = model["end_of_word_suffix"].text_or("");
  if (model["unk_token"].is_given()) options.unk = id_of(*parts.table, model["unk_token"]);
  options.fuse_unk = model["fuse_unk"].flag_or(false);
  options.byte_fallback = model["byte_fallback"].flag_or(false);
  options.whole_words = model["ignore_merges"].flag_or(false);
  std::vector<Merge> merges;
  const JsonValue list = model["merges"];
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [left, right] = read_pair(list.item(i));
    const bool prefixed = !options.prefix.empty() && right.starts_with(options.prefix);
    const auto a = parts.table->find(left), b = parts.table->find(right);
    const auto merged = parts.table->find(left + (prefixed ? right.substr(options.prefix.size()) : right));
    if (!a || !b || !merged) list.item(i).refuse_value(tr("two tokens of the vocabulary that make a third"));
    merges.push_back({*a, *b, *merged, static_cast<int32_t>(i)});
  }
  parts.model = byte_pair_model(*parts.table, merges, options);
  return bytes ? "BPE of bytes" : "BPE";
}

std::string read_unigrams(const JsonValue& model, PipelineParts& parts) {
  const JsonValue vocabulary = model["vocab"];
  std::vector<std::string> pieces;
  std::vector<double> scores;
  if (vocabulary.size() == 0 || vocabulary.size() > static_cast<size_t>(kMostIds))
    vocabulary.refuse_value(tr("a list of 1 to {most} tokens", "most"_a = kMostIds));
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const JsonValue entry = vocabulary.item(i);
    if (entry.size() != 2) entry.refuse_value(tr("a token and its score"));
    pieces.push_back(entry.item(0).text());
    scores.push_back(entry.item(1).number());
  }
  parts.table = std::make_unique<PieceTable>(std::move(pieces));
  UnigramOptions options;
  if (const JsonValue unk = model["unk_id"]; unk.is_given())
    options.unk = static_cast<int32_t>(unk.whole(0, parts.table->size() - 1));
  options.byte_fallback = model["byte_fallback"].flag_or(false);
  parts.model = unigram_model(*parts.table, std::move(scores), options);
  return "unigrams";
}

// Files of old versions do not name their type.
std::string model_type(const JsonValue& model) {
  if (model["type"].is_given() || !model.is_object()) return model["type"].text();
  if (model["merges"].is_given()) return "BPE";
  return model["unk_id"].is_given() ? "Unigram" : "WordPiece";
}

std::vector<int32_t> read_ids(const JsonValue& list) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < list.size(); ++i) ids.push_back(static_cast<int32_t>(list.item(i).whole(0, kMostIds - 1)));
  return ids;
}

std::vector<TemplateItem> read_template(const JsonValue& list, const JsonValue& tokens) {
  std::vector<TemplateItem> items;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonValue item = list.item(i), text = item["Sequence"], token = item["SpecialToken"];
    const auto type = static_cast<int32_t>((text.is_given() ? text : token)["type_id"].whole(0, 1));
    if (text.is_given()) {
      const std::string id = text["id"].text();
      if (id != "A" && id != "B") text["id"].refuse_value(tr("A or B"));
      items.push_back({id == "A" ? TemplateItem::Kind::first : TemplateItem::Kind::second, 0, type});
    } else {
      for (const int32_t id : read_ids(tokens[token["id"].text()]["ids"]))
        items.push_back({TemplateItem::Kind::token, id, type});
    }
  }
  return items;
}

// ["[SEP]", 102]
int32_t read_named_id(const JsonValue& token) {
  if (token.size() != 2) token.refuse_value(tr("a token and its number"));
  return static_cast<int32_t>(token.item(1).whole(0, kMostIds - 1));
}

void check_template(const TokenTemplate& tokens, const TokenCodec& codec, const JsonValue& value) {
  for (const auto* items : {&tokens.single, &tokens.pair})
    for (const TemplateItem& item : *items)
      require(item.kind != TemplateItem::Kind::token || item.id < codec.size(),
              "{file}: {key} names token {id}, expected at most {most}", "file"_a = value.file(), "key"_a = value.key(),
              "id"_a = item.id, "most"_a = codec.size() - 1);
}

}  // namespace

std::unique_ptr<const PieceTable> read_table(const JsonValue& vocabulary) {
  std::vector<std::string> pieces;
  vocabulary.each([&](const std::string& piece, const JsonValue& value) {
    const auto id = static_cast<size_t>(value.whole(0, kMostIds - 1));
    if (pieces.size() <= id) pieces.resize(std::max(id + 1, pieces.size() + pieces.size() / 2));
    if (!pieces[id].empty()) value.refuse_value(tr("a number that no other token has"));
    pieces[id] = piece;
  });
  while (!pieces.empty() && pieces.back().empty()) pieces.pop_back();
  if (pieces.empty()) vocabulary.refuse_value(tr("at least one token"));
  return std::make_unique<PieceTable>(std::move(pieces));
}

std::string read_model(const JsonValue& value, bool bytes, PipelineParts& parts) {
  const std::string type = model_type(value);
  constexpr std::string_view kKnown[] = {"BPE", "Unigram", "WordPiece"};
  if (std::find(std::begin(kKnown), std::end(kKnown), type) == std::end(kKnown)) value["type"].refuse_kind(kKnown);
  if (type == "BPE") return read_byte_pairs(value, bytes, parts);
  if (bytes) value["type"].refuse_value(tr("BPE, which ByteLevel needs"));
  return type == "WordPiece" ? read_word_piece(value, parts) : read_unigrams(value, parts);
}

AddedToken read_added_token(const JsonValue& value, int32_t id) {
  AddedToken token;
  token.id = id;
  token.content = value.is_text() ? value.text() : value["content"].text();
  token.single_word = value["single_word"].flag_or(false);
  token.lstrip = value["lstrip"].flag_or(false);
  token.rstrip = value["rstrip"].flag_or(false);
  token.special = value["special"].flag_or(false);
  token.normalized = value["normalized"].flag_or(!token.special);
  return token;
}

PostProcessor read_post_processor(const JsonValue& value) {
  PostProcessor out;
  if (!value.is_given()) return out;
  const std::string type = value["type"].text();
  if (type == "TemplateProcessing") {
    out.tokens.single = read_template(value["single"], value["special_tokens"]);
    out.tokens.pair = read_template(value["pair"], value["special_tokens"]);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const int32_t cls = read_named_id(value["cls"]), sep = read_named_id(value["sep"]);
    const bool roberta = type == "RobertaProcessing";
    const std::vector<int32_t> between(roberta ? 2 : 1, sep);
    out.tokens = surround(std::span(&cls, 1), std::span(&sep, 1), between, roberta ? 0 : 1);
    out.trim_offsets = roberta && value["trim_offsets"].flag_or(true);
  } else if (type == "ByteLevel") {
    out.trim_offsets = value["trim_offsets"].flag_or(true);
  } else if (type == "Sequence") {
    bool has_template = false;
    for (size_t i = 0; i < value["processors"].size(); ++i) {
      const JsonValue step = value["processors"].item(i);
      PostProcessor read = read_post_processor(step);
      out.trim_offsets = out.trim_offsets || read.trim_offsets;
      if (step["type"].text() == "ByteLevel") continue;
      if (has_template) step["type"].refuse_value(tr("one step alone that adds tokens"));
      has_template = true;
      out.tokens = std::move(read.tokens);
    }
  } else {
    constexpr std::string_view kKnown[] = {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence",
                                           "TemplateProcessing"};
    value["type"].refuse_kind(kKnown);
  }
  return out;
}

OpenedTokenizer read_tokenizer_json(const std::string& path) {
  const JsonFile file(path);
  const JsonValue root = file.root();
  OpenedTokenizer out;
  PipelineParts parts;
  const JsonValue splitter = root["pre_tokenizer"], added = root["added_tokens"];
  parts.normalizer = read_normalizer(root["normalizer"]);
  parts.splitter = read_splitter(splitter);
  out.kind = read_model(root["model"], is_byte_level(splitter), parts);
  parts.decoder = read_decoder(root["decoder"]);
  for (size_t i = 0; i < added.size(); ++i) {
    const JsonValue id = added.item(i)["id"];
    AddedToken token = read_added_token(added.item(i), static_cast<int32_t>(id.whole(0, kMostIds - 1)));
    const auto other = parts.table->find(token.content);
    if ((other && *other != token.id) || (!other && parts.table->is_used(token.id)))
      id.refuse_value(tr("the number that the vocabulary gives this token, or one that it does not use"));
    parts.added.push_back(std::move(token));
  }
  const PostProcessor post = read_post_processor(root["post_processor"]);
  parts.trim_offsets = post.trim_offsets;
  parts.words_by_blanks = cuts_nothing(splitter);
  out.tokens = post.tokens;
  out.codec = token_pipeline(std::move(parts));
  check_template(out.tokens, *out.codec, root["post_processor"]);
  out.files = {"tokenizer.json"};
  return out;
}

}  // namespace qkv
