// The book's two loaders of fra.txt, token for token.
#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/data/translation.h"

namespace qkv {
namespace {

// The tokens of many lines in one array: line i has tokens [begin[i], begin[i + 1]).
struct Side {
  std::vector<std::string_view> tokens;
  std::vector<size_t> begin = {0};

  size_t lines() const { return begin.size() - 1; }
  std::span<const std::string_view> line(size_t i) const {
    return std::span(tokens).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  void add(std::string_view sentence, Edition edition) {
    for (size_t at = 0;;) {
      const size_t space = std::min(sentence.find(' ', at), sentence.size());
      if (space > at || edition == Edition::zh)
        tokens.push_back(sentence.substr(at, space - at));  // the Chinese edition keeps empty tokens
      if (space == sentence.size()) break;
      at = space + 1;
    }
    begin.push_back(tokens.size());
  }
};

// The first `count` lines of the file, preprocessed as one text like in the book, whose punctuation rule looks across
// columns and lines.
std::string prepared_text(const std::string& path, int64_t count) {
  const std::string text = read_text(path);
  size_t end = 0;
  for (int64_t number = 1; end < text.size() && number <= count; ++number) {
    const size_t stop = std::min(text.find('\n', end), text.size());
    check_columns(std::string_view(text).substr(end, stop - end), path, number, ThirdColumn::refuse);
    end = std::min(stop + 1, text.size());
  }
  return preprocess_nmt(std::string_view(text).substr(0, end));
}

struct Sides {
  Side source, target;
  SentencePairs sentences;
};

Sides split_sides(std::string_view text, Edition edition) {
  Sides out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size()), tab = text.find('\t', at);
    const std::string_view source = text.substr(at, tab - at), target = text.substr(tab + 1, end - tab - 1);
    out.source.add(source, edition);
    out.target.add(target, edition);
    out.sentences.source.emplace_back(source);
    out.sentences.target.emplace_back(target);
    at = end + 1;
  }
  return out;
}

// A side's vocabulary, and the ids of all its tokens.
struct Numbered {
  Vocabulary vocabulary;
  std::vector<int32_t> ids;
};

Numbered number_zh(const Side& side) {
  TokenCounts counts;
  std::vector<size_t> numbers;  // so that two million tokens are looked up once, not twice
  numbers.reserve(side.tokens.size());
  for (const std::string_view token : side.tokens) numbers.push_back(counts.add(token));
  Numbered out{Vocabulary::build(counts, 2, Edition::zh), {}};
  std::vector<int32_t> id_of(counts.distinct());
  for (size_t i = 0; i < id_of.size(); ++i) id_of[i] = out.vocabulary.id(counts.token(i));
  out.ids.reserve(numbers.size());
  for (const size_t number : numbers) out.ids.push_back(id_of[number]);
  return out;
}

// The English edition counts the tokens of the cut and padded lists, special tokens included.
Numbered number_en(const Side& side, int64_t num_steps, bool with_begin) {
  TokenCounts counts;
  for (size_t i = 0; i < side.lines(); ++i) {
    const auto line = side.line(i);
    const size_t shown = std::min(line.size(), static_cast<size_t>(num_steps));
    for (const std::string_view token : line.first(shown)) counts.add(token);
    if (shown < static_cast<size_t>(num_steps)) {
      counts.add(kEnd);
      counts.add(kPadding, num_steps - static_cast<int64_t>(shown) - 1);
    }
    if (with_begin) counts.add(kBegin);
  }
  Numbered out{Vocabulary::build(counts, 2, Edition::en), {}};
  for (const std::string_view token : side.tokens) out.ids.push_back(out.vocabulary.id(token));
  return out;
}

std::vector<int32_t> line_ids(const Side& side, size_t i, const Numbered& numbered) {
  std::vector<int32_t> ids;
  ids.reserve(side.begin[i + 1] - side.begin[i] + 1);
  for (size_t at = side.begin[i]; at < side.begin[i + 1]; ++at) ids.push_back(numbered.ids[at]);
  ids.push_back(numbered.vocabulary.eos());
  return ids;
}

BookCorpus corpus_of(Sides sides, const Numbered& source, const Numbered& target, int64_t num_train,
                     int64_t num_steps) {
  BookCorpus book{Tokenizer::words(source.vocabulary, WordRule::book),
                  Tokenizer::words(target.vocabulary, WordRule::book, Spacing::french),
                  std::move(sides.sentences),
                  {},
                  {},
                  num_steps};
  for (size_t i = 0; i < sides.source.lines(); ++i) {
    auto& part = static_cast<int64_t>(i) < num_train ? book.train : book.validation;
    part.push_back({line_ids(sides.source, i, source), line_ids(sides.target, i, target)});
  }
  return book;
}

}  // namespace

BookCorpus load_book_zh(const std::string& path, int64_t num_examples) {
  check(num_examples >= -1, "[load_book_zh] num_examples is ", num_examples, ", expected -1 (all) or more");
  const std::string text =
      prepared_text(path, num_examples < 0 || num_examples == INT64_MAX ? INT64_MAX : num_examples + 1);
  Sides sides = split_sides(text, Edition::zh);
  const Numbered source = number_zh(sides.source), target = number_zh(sides.target);
  return corpus_of(std::move(sides), source, target, INT64_MAX, 10);
}

BookCorpus load_book_en(const std::string& path, int64_t num_train, int64_t num_val, int64_t num_steps) {
  check(num_train >= 1 && num_val >= 0 && num_steps >= 1, "[load_book_en] num_train, num_val and num_steps are ",
        num_train, ", ", num_val, " and ", num_steps, ", expected at least 1, 0 and 1");
  const std::string text = prepared_text(path, num_train + num_val + 1);
  Sides sides = split_sides(text, Edition::en);
  const Numbered source = number_en(sides.source, num_steps, false), target = number_en(sides.target, num_steps, true);
  return corpus_of(std::move(sides), source, target, num_train, num_steps);
}

}  // namespace qkv
