// Reads a text, splits off its end for validation and makes a tokenizer.
#include "qkv/tasks/language/data.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corpus.h"
#include "qkv/data/en_fr.h"
#include "qkv/data/text.h"
#include "qkv/tasks/pretrained/language.h"

namespace qkv {
namespace {

std::string joined(const std::vector<AlignedPair>& pairs) {
  std::string out;
  for (const AlignedPair& pair : pairs) {
    out += pair.source;
    out += '\n';
  }
  return out;
}

// Where the validation part begins: after that share of the characters. Words and subwords stay whole, and so do lines.
size_t cut_at(const std::string& text, double valid_share, bool whole_lines) {
  const auto wanted = static_cast<int64_t>((1 - valid_share) * static_cast<double>(count_characters(text)));
  size_t at = 0;
  for (int64_t seen = 0; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && seen++ == wanted) break;
  if (!whole_lines) return at;
  const size_t end = text.find('\n', at);
  return end == std::string::npos ? at : end + 1;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out = split(text, '\n');
  if (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

Subwords subwords_of(const LanguageDataConfig& c, std::vector<std::string> lines) {
  for (std::string& line : lines) {
    line = normalized(line, c.normalize).text;
    if (c.lowercase) line = lowercase(line);
  }
  try {
    return Subwords::train(lines, {.kind = c.tokenizer == TextTokens::bpe ? SubwordKind::bpe : SubwordKind::unigram,
                                   .size = static_cast<int32_t>(c.vocabulary)});
  } catch (const SubwordSizeError& e) {
    const int64_t nearest = e.nearest();
    const Text hint = nearest >= kLeastSubwords ? verbatim(text("--vocabulary ", nearest))
                                                : tr("--tokenizer words needs no subwords");
    throw Error(nearest < c.vocabulary
                    ? tr("data.vocabulary is {size}, but {name} gives at most {most} subwords", "size"_a = c.vocabulary,
                         "name"_a = tr("the text"), "most"_a = nearest)
                    : tr("data.vocabulary is {size}, but the characters of {name} need at least {least} subwords",
                         "size"_a = c.vocabulary, "name"_a = tr("the text"), "least"_a = nearest),
                hint);
  }
}

TextTokenizer made_tokenizer(const LanguageDataConfig& c, const std::string& train) {
  if (c.tokenizer == TextTokens::bytes) return TextTokenizer::bytes();
  if (c.tokenizer == TextTokens::characters) return TextTokenizer::characters(train);
  const std::vector<std::string> lines = lines_of(train);
  if (c.has_subwords())
    return TextTokenizer::lines(Tokenizer::subwords(subwords_of(c, lines), c.lowercase, c.normalize));
  TokenCounts counts;
  for (const std::string& line : lines)
    for (const Word& word : split_words(line, WordRule::words)) counts.add(word.text);
  return TextTokenizer::lines(Tokenizer::words(Vocabulary::build(counts, c.min_count), WordRule::words));
}

}  // namespace

std::vector<int32_t> encode_text(const TextTokenizer& tokenizer, const std::string& text, const Text& name) {
  if (tokenizer.most_line_bytes() < text.size()) {
    size_t number = 1;
    for (size_t begin = 0; begin < text.size(); ++number) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      require(end - begin <= tokenizer.most_line_bytes(),
              "{name}: line {line} has {bytes} bytes; with subwords a line may have at most {most}", "name"_a = name,
              "line"_a = number, "bytes"_a = grouped(end - begin), "most"_a = grouped(tokenizer.most_line_bytes()));
      begin = end + 1;
    }
  }
  return tokenizer.encode(text);
}

LanguageText read_language_text(const LanguageDataConfig& c, const std::string& tokenizer_folder) {
  std::string train, valid;
  if (c.built_in()) {
    const EnFrSplit corpus = en_fr_split({.size = c.corpus_size, .seed = static_cast<uint64_t>(c.corpus_seed)});
    train = joined(corpus.train);
    valid = joined(corpus.valid);
  } else {
    train = read_text(c.text);
    if (!c.valid_text.empty()) {
      valid = read_text(c.valid_text);
    } else if (c.valid_share > 0) {
      const bool whole_lines = c.tokenizer != TextTokens::characters && c.tokenizer != TextTokens::bytes;
      const size_t cut = cut_at(train, c.valid_share, whole_lines);
      valid = train.substr(cut);
      train.resize(cut);
    }
  }
  const std::string name = c.built_in() ? "en-fr" : c.text;
  TextTokenizer tokenizer = tokenizer_folder.empty() ? made_tokenizer(c, train) : open_text_tokenizer(tokenizer_folder);
  LanguageText out{std::move(train), std::move(valid), std::move(tokenizer), {}, {}};
  out.train_ids = encode_text(out.tokenizer, out.train, name);
  out.valid_ids = encode_text(out.tokenizer, out.valid, c.valid_text.empty() ? name : c.valid_text);
  return out;
}

}  // namespace qkv
