// Tokenizer: from sentences to ids and back, by words over a vocabulary or by subwords.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/normalize.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/data/vocabulary.h"
#include "qkv/data/word_forms.h"

namespace qkv {

/// Cheap to copy; never changes.
class Tokenizer {
 public:
  /// Words by rule. One that the vocabulary has not is looked up as the vocabulary writes its words (WordForms), before
  /// it becomes <unk>.
  static Tokenizer words(Vocabulary vocabulary, WordRule rule, Spacing spacing = Spacing::english);
  static Tokenizer subwords(Subwords model, bool lowercase, Normalization form = Normalization::none);

  /// The ids of a sentence, without <bos> and <eos>. No text can make <pad>, <bos> or <eos>: where it spells them it
  /// becomes <unk>.
  std::vector<int32_t> encode(std::string_view sentence) const;
  /// The sentence of ids; <pad>, <bos> and <eos> are left out. Words that have lost capitals and places of punctuation
  /// get them back as `writing` says.
  std::string decode(std::span<const int32_t> ids, Writing writing = {}) const;
  /// How a sentence is written; nothing for subwords, which keep it themselves.
  Writing writing(std::string_view sentence) const;
  /// Every id's token, specials too, as on the axes of a heat map.
  std::vector<std::string> tokens(std::span<const int32_t> ids) const;
  /// For every token of encode(sentence) the number, from 0, of the blank-separated word it comes from.
  std::vector<int32_t> word_of_token(std::string_view sentence) const;

  /// Bytes that a sentence may have: for subwords there is a limit.
  size_t most_bytes() const;
  int32_t size() const;
  int32_t unk() const;
  int32_t pad() const;
  int32_t bos() const;  // -1 where the vocabulary has none
  int32_t eos() const;
  /// The vocabulary of a tokenizer of words, else null.
  const Vocabulary* vocabulary() const;
  /// Its tokens have no capitals: the text is put in lower case, or was in it.
  bool is_lower() const;

  /// Writes tokenizer.NAME.txt (one line: "words RULE" or "words RULE french"; "subwords lower" or "subwords cased",
  /// then the normalisation if there is one) and vocab.NAME.txt or NAME.model.
  void save(const std::string& folder, const std::string& name) const;
  static Tokenizer load(const std::string& folder, const std::string& name);

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::vector<Word> split(std::string_view sentence) const;
  NormalizedSentence prepared(std::string_view sentence) const;
  bool is_hidden(int32_t id) const { return id == pad() || id == bos() || id == eos(); }
  std::shared_ptr<const State> state_;
};

}  // namespace qkv
