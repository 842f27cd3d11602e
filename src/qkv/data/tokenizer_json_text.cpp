// Normalizers, pre-tokenizers and decoders of tokenizer.json.
#include <array>

#include "qkv/data/tokenizer_json.h"

namespace qkv {
namespace {

template <class Step, class Read>
std::vector<std::unique_ptr<const Step>> read_steps(const JsonValue& list, Read read) {
  std::vector<std::unique_ptr<const Step>> steps;
  for (size_t i = 0; i < list.size(); ++i) steps.push_back(read(list.item(i)));
  return steps;
}

// What to look for: {"String": "..."}, or nothing for {"Regex": "..."}.
std::string pattern_text(const JsonValue& pattern) {
  return pattern["String"].is_given() ? pattern["String"].text() : std::string();
}

std::unique_ptr<const Normalizer> read_replacement(const JsonValue& value) {
  const JsonValue pattern = value["pattern"];
  const std::string with = value["content"].text();
  if (pattern["String"].is_given()) return replace_normalizer(pattern_text(pattern), with, false);
  constexpr std::string_view kKnown[] = {" {2,}"};
  if (pattern["Regex"].text() != kKnown[0]) pattern["Regex"].refuse_kind(kKnown);
  return replace_normalizer(" ", with, true);
}

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

TokenPattern read_pattern(const JsonValue& regex) {
  const std::string pattern = regex.text();
  if (pattern == kGpt2) return TokenPattern::gpt2;
  if (pattern == kLlama3) return TokenPattern::llama3;
  if (pattern == kQwen2) return TokenPattern::qwen2;
  if (pattern == R"(\w+|[^\w\s]+)") return TokenPattern::words;
  if (pattern == R"(\s+)") return TokenPattern::blanks;
  if (pattern == R"(\p{N})") return TokenPattern::digits;
  regex.refuse_value(tr("one of the patterns of GPT-2, Llama 3 and Qwen 2, \\w+|[^\\w\\s]+, \\s+ or \\p{N}"));
}

SplitBehavior read_behavior(const JsonValue& value) {
  constexpr std::array<std::string_view, 5> kNames = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                      "Contiguous"};
  const std::string name = value.text_or("Isolated");
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<SplitBehavior>(i);
  value.refuse_kind(kNames);
}

std::unique_ptr<const Splitter> read_split(const JsonValue& value) {
  const SplitBehavior behavior = read_behavior(value["behavior"]);
  const bool invert = value["invert"].flag_or(false);
  const JsonValue pattern = value["pattern"];
  if (!pattern["String"].is_given()) return pattern_splitter(read_pattern(pattern["Regex"]), behavior, invert);
  if (pattern_text(pattern).empty()) pattern["String"].refuse_value(tr("a text that is not empty"));
  return text_splitter(pattern_text(pattern), behavior, invert);
}

PrependScheme read_scheme(const JsonValue& value) {
  constexpr std::array<std::string_view, 3> kNames = {"always", "first", "never"};
  const JsonValue scheme = value["prepend_scheme"];
  const std::string name = scheme.text_or(value["add_prefix_space"].flag_or(true) ? "always" : "never");
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<PrependScheme>(i);
  scheme.refuse_kind(kNames);
}

std::string read_sign(const JsonValue& value) { return value["replacement"].text_or("\xE2\x96\x81"); }

}  // namespace

std::unique_ptr<const Normalizer> read_normalizer(const JsonValue& value) {
  if (!value.is_given()) return nullptr;
  const std::string type = value["type"].text();
  if (type == "BertNormalizer") {
    BertRules rules;
    rules.clean = value["clean_text"].flag_or(true);
    rules.cjk = value["handle_chinese_chars"].flag_or(true);
    rules.lower = value["lowercase"].flag_or(true);
    rules.strip_accents = value["strip_accents"].flag_or(rules.lower);
    return bert_normalizer(rules);
  }
  if (type == "NFC") return normal_form(NormalForm::nfc);
  if (type == "NFD") return normal_form(NormalForm::nfd);
  if (type == "NFKC") return normal_form(NormalForm::nfkc);
  if (type == "NFKD") return normal_form(NormalForm::nfkd);
  if (type == "Lowercase") return lowercase_normalizer();
  if (type == "StripAccents") return strip_accents_normalizer();
  if (type == "Strip")
    return strip_blanks_normalizer(value["strip_left"].flag_or(true), value["strip_right"].flag_or(true));
  if (type == "Prepend") return prepend_normalizer(value["prepend"].text());
  if (type == "Replace") return read_replacement(value);
  if (type == "Sequence") return normalizer_sequence(read_steps<Normalizer>(value["normalizers"], read_normalizer));
  constexpr std::string_view kKnown[] = {"BertNormalizer", "Lowercase", "NFC",      "NFD",   "NFKC",        "NFKD",
                                         "Prepend",        "Replace",   "Sequence", "Strip", "StripAccents"};
  value["type"].refuse_kind(kKnown);
}

std::unique_ptr<const Splitter> read_splitter(const JsonValue& value) {
  if (!value.is_given()) return nullptr;
  const std::string type = value["type"].text();
  if (type == "BertPreTokenizer") return bert_splitter();
  if (type == "ByteLevel")
    return byte_level_splitter(value["add_prefix_space"].flag_or(true), value["use_regex"].flag_or(true));
  if (type == "Metaspace")
    return metaspace_splitter(read_sign(value), read_scheme(value), value["split"].flag_or(true));
  if (type == "Whitespace") return whitespace_splitter();
  if (type == "WhitespaceSplit") return blank_splitter();
  if (type == "Punctuation") return punctuation_splitter(read_behavior(value["behavior"]));
  if (type == "Digits") return digit_splitter(value["individual_digits"].flag_or(false));
  if (type == "Split") return read_split(value);
  if (type == "Sequence") {
    const JsonValue steps = value["pretokenizers"];
    for (size_t i = 0; i + 1 < steps.size(); ++i)
      if (is_byte_level(steps.item(i))) steps.item(i)["type"].refuse_value(tr("ByteLevel as the last step alone"));
    return splitter_sequence(read_steps<Splitter>(steps, read_splitter));
  }
  constexpr std::string_view kKnown[] = {"BertPreTokenizer", "ByteLevel", "Digits",     "Metaspace",      "Punctuation",
                                         "Sequence",         "Split",     "Whitespace", "WhitespaceSplit"};
  value["type"].refuse_kind(kKnown);
}

bool is_byte_level(const JsonValue& splitter) {
  if (!splitter.is_given()) return false;
  const std::string type = splitter["type"].text();
  const JsonValue steps = splitter["pretokenizers"];
  if (type == "Sequence") return steps.size() > 0 && is_byte_level(steps.item(steps.size() - 1));
  return type == "ByteLevel";
}

bool cuts_nothing(const JsonValue& splitter) {
  if (!splitter.is_given()) return true;
  return splitter["type"].text() == "Metaspace" && !splitter["split"].flag_or(true);
}

std::unique_ptr<const TokenDecoder> read_decoder(const JsonValue& value) {
  if (!value.is_given()) return spaces_decoder();
  const std::string type = value["type"].text();
  if (type == "WordPiece") return word_piece_decoder(value["prefix"].text_or("##"), value["cleanup"].flag_or(true));
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "Metaspace") return metaspace_decoder(read_sign(value), read_scheme(value) != PrependScheme::never);
  if (type == "BPEDecoder") return suffix_decoder(value["suffix"].text_or("</w>"));
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  if (type == "Strip")
    return strip_decoder(value["content"].text(), value["start"].whole(0, INT32_MAX),
                         value["stop"].whole(0, INT32_MAX));
  if (type == "Replace") {
    const JsonValue pattern = value["pattern"];
    return replace_decoder(pattern["String"].text(), value["content"].text());
  }
  if (type == "Sequence") return decoder_sequence(read_steps<TokenDecoder>(value["decoders"], read_decoder));
  constexpr std::string_view kKnown[] = {"BPEDecoder", "ByteFallback", "ByteLevel", "Fuse",     "Metaspace",
                                         "Replace",    "Sequence",     "Strip",     "WordPiece"};
  value["type"].refuse_kind(kKnown);
}

}  // namespace qkv
