// Reads corpora, splits off validation pairs and makes tokenizers.
#include "qkv/tasks/translation/data.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/data/en_fr.h"
#include "qkv/data/text.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/translation.h"

namespace qkv {
namespace {

SentencePairs swapped(SentencePairs pairs, bool reverse) {
  if (reverse) std::swap(pairs.source, pairs.target);
  return pairs;
}

SentencePairs first_pairs(SentencePairs pairs, int64_t limit) {
  if (limit > 0 && limit < pairs.size()) {
    pairs.source.resize(static_cast<size_t>(limit));
    pairs.target.resize(static_cast<size_t>(limit));
  }
  return pairs;
}

SentencePairs sentences_of(const std::vector<AlignedPair>& corpus) {
  SentencePairs out;
  for (const AlignedPair& pair : corpus) {
    out.source.push_back(pair.source);
    out.target.push_back(pair.target);
  }
  return out;
}

void read_built_in(const TranslationDataConfig& c, SentencePairs& train, SentencePairs& valid) {
  const EnFrSplit split =
      en_fr_split({.size = c.corpus_size, .seed = static_cast<uint64_t>(c.corpus_seed), .reverse = c.reverse});
  train = first_pairs(sentences_of(split.train), c.limit);
  valid = sentences_of(split.valid);
}

void read_files(const TranslationDataConfig& c, uint64_t seed, SentencePairs& train, SentencePairs& valid) {
  train = c.pairs.empty() ? first_pairs(read_aligned(c.source, c.target), c.limit)
                          : read_pairs(c.pairs, c.limit > 0 ? c.limit : -1);
  train = swapped(std::move(train), c.reverse);
  if (!c.valid_pairs.empty())
    valid = swapped(read_pairs(c.valid_pairs), c.reverse);
  else if (!c.valid_source.empty())
    valid = swapped(read_aligned(c.valid_source, c.valid_target), c.reverse);
  else if (c.valid_share > 0) {
    const auto wanted = static_cast<int64_t>(std::ceil(c.valid_share * static_cast<double>(train.size())));
    const Split split = split_by_source(train, wanted, 0, seed);
    valid = select(train, split.validation);
    train = select(train, split.train);
  }
}

Tokenizer word_tokenizer(const std::vector<std::string>& sentences, WordRule rule, int64_t min_count, Spacing spacing) {
  std::vector<std::vector<std::string>> lines;
  lines.reserve(sentences.size());
  for (const std::string& s : sentences) {
    auto& line = lines.emplace_back();
    for (Word& word : split_words(s, rule)) line.push_back(std::move(word.text));
  }
  return Tokenizer::words(Vocabulary::build(lines, min_count), rule, spacing);
}

// A model for each text. An impossible size is an error that names the setting and the nearest size possible for all.
std::vector<Subwords> train_subwords(const std::vector<std::vector<std::string>>& texts,
                                     const SubwordOptions& options) {
  std::vector<Subwords> out;
  int32_t most = options.size, least = options.size;
  for (const std::vector<std::string>& sentences : texts) {
    try {
      out.push_back(Subwords::train(sentences, options));
    } catch (const SubwordSizeError& e) {
      most = std::min(most, e.nearest());
      least = std::max(least, e.nearest());
    }
  }
  const Text name = texts.size() > 1 ? tr("a side of the text") : tr("the text");
  if (most < options.size)
    throw Error(
        tr("data.vocabulary is {size}, but {name} gives at most {most} subwords", "size"_a = options.size,
           "name"_a = name, "most"_a = most),
        most >= kLeastSubwords ? verbatim(text("--vocabulary ", most)) : tr("--tokenizer words needs no subwords"));
  if (least > options.size)
    throw Error(tr("data.vocabulary is {size}, but the characters of {name} need at least {least} subwords",
                   "size"_a = options.size, "name"_a = name, "least"_a = least),
                verbatim(text("--vocabulary ", least)));
  return out;
}

Tokenizers make_tokenizers(const TranslationDataConfig& c, const SentencePairs& train) {
  if (c.has_subwords()) {
    const SubwordOptions options{.kind = c.tokenizer == TokenizerKind::bpe ? SubwordKind::bpe : SubwordKind::unigram,
                                 .size = static_cast<int32_t>(c.vocabulary)};
    const Normalization form = c.normalize;
    const auto prepared = [&](std::vector<std::string> sentences) {
      for (std::string& s : sentences) {
        s = normalized(s, form).text;
        if (c.lowercase) s = lowercase(s);
      }
      return sentences;
    };
    if (c.shared_vocabulary) {
      std::vector<std::string> both = train.source;
      both.insert(both.end(), train.target.begin(), train.target.end());
      const Tokenizer shared =
          Tokenizer::subwords(train_subwords({prepared(std::move(both))}, options)[0], c.lowercase, form);
      return {shared, shared};
    }
    const std::vector<Subwords> sides = train_subwords({prepared(train.source), prepared(train.target)}, options);
    return {Tokenizer::subwords(sides[0], c.lowercase, form), Tokenizer::subwords(sides[1], c.lowercase, form)};
  }
  const WordRule rule = c.tokenizer == TokenizerKind::spaces ? WordRule::spaces : WordRule::words;
  const bool built_in = c.built_in();
  return {word_tokenizer(train.source, rule, c.min_count, built_in && c.reverse ? Spacing::french : Spacing::english),
          word_tokenizer(train.target, rule, c.min_count, built_in && !c.reverse ? Spacing::french : Spacing::english)};
}

// "there?", but neither "?" nor "...".
bool ends_in_punctuation(std::string_view word) {
  for (const std::string_view mark : {".", ",", "!", "?", ";", ":", "。", "，", "！", "？", "；", "："})
    if (word.ends_with(mark)) {
      const std::string_view rest = word.substr(0, word.size() - mark.size());
      return std::any_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isalnum(c) || c >= 0x80; });
    }
  return false;
}

}  // namespace

AttachedPunctuation attached_punctuation(std::span<const std::string> sentences) {
  AttachedPunctuation out;
  size_t count = 0;
  for (const std::string& sentence : sentences) {
    const auto words = split_blanks(sentence);
    const auto found = std::find_if(words.begin(), words.end(), ends_in_punctuation);
    if (found == words.end()) continue;
    if (count++ == 0) out.example = *found;
  }
  out.share = sentences.empty() ? 0 : static_cast<double>(count) / static_cast<double>(sentences.size());
  return out;
}

TranslationText read_translation_text(const TranslationDataConfig& config, uint64_t seed,
                                      const std::string& tokenizer_folder) {
  if (config.tokenizer == TokenizerKind::book) {
    require(!config.pairs.empty() && !config.built_in(),
            "data.tokenizer book needs the book's fra.txt: give it with --data");
    BookCorpus book = load_book_zh(config.pairs, config.limit > 0 ? config.limit : -1);
    return {std::move(book.sentences),
            {},
            tokenizer_folder.empty() ? Tokenizers{book.source, book.target} : load_tokenizers(tokenizer_folder)};
  }
  if (config.tokenizer == TokenizerKind::book_en) {
    require(!config.pairs.empty() && !config.built_in(),
            "data.tokenizer book-en needs the book's fra.txt: give it with --data");
    BookCorpus book = load_book_en(config.pairs);
    SentencePairs first = book.sentences, rest;
    const auto cut = static_cast<std::ptrdiff_t>(book.train.size());
    for (auto [all, tail] : {std::pair{&first.source, &rest.source}, std::pair{&first.target, &rest.target}}) {
      tail->assign(all->begin() + cut, all->end());
      all->resize(book.train.size());
    }
    return {std::move(first), std::move(rest),
            tokenizer_folder.empty() ? Tokenizers{book.source, book.target} : load_tokenizers(tokenizer_folder)};
  }
  SentencePairs train, valid;
  if (config.built_in())
    read_built_in(config, train, valid);
  else
    read_files(config, seed, train, valid);
  Tokenizers tokenizers = tokenizer_folder.empty() ? make_tokenizers(config, train) : load_tokenizers(tokenizer_folder);
  return {std::move(train), std::move(valid), std::move(tokenizers)};
}

Tokenizers load_tokenizers(const std::string& folder) {
  if (is_pretrained_folder(folder)) return open_pretrained_tokenizers(folder);
  Tokenizers out{Tokenizer::load(folder, "source"), Tokenizer::load(folder, "target")};
  require(out.target.bos() >= 0,
          "{folder}/vocab.target.txt: the special token {begin} is missing: translations begin with it",
          "folder"_a = folder, "begin"_a = kBegin);
  return out;
}

void save_tokenizers(const Tokenizers& tokenizers, const std::string& folder) {
  tokenizers.source.save(folder, "source");
  tokenizers.target.save(folder, "target");
}

}  // namespace qkv
