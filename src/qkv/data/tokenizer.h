// Tokenizer: from sentences to ids and back, by words of a vocabulary, by subwords, or as a pretrained folder does.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/normalize.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/data/vocabulary.h"
#include "qkv/data/word_forms.h"

namespace QKV_API qkv {

/// Immutable and cheap to copy.
class Tokenizer {
 public:
  /// Words by a rule. A word that is not in the vocabulary is looked up in the vocabulary's spelling (WordForms) before
  /// it becomes <unk>.
  static Tokenizer words(Vocabulary vocabulary, WordRule rule, Spacing spacing = Spacing::english);
  static Tokenizer subwords(Subwords model, bool lowercase, Normalization form = Normalization::none);

  /// One side of a pretrained translation model. `tokens` says which ids begin, end and pad a text; it may name the
  /// same id twice. The model's embedding may have more `rows` than there are tokens; size() is their number.
  enum class Side { source, target };
  struct Tokens {
    int32_t begin, end, pad;
    int32_t rows = 0;  // 0: as many as there are tokens
  };
  static Tokenizer pretrained(PretrainedTokenizer model, Side side, const Tokens& tokens);

  /// The ids of a sentence, without <bos> and <eos>. Text that spells <pad>, <bos> or <eos> becomes <unk>.
  std::vector<int32_t> encode(std::string_view sentence) const;
  /// The sentence of ids; <pad>, <bos> and <eos> are left out. Words that lost capitals and spacing get them back as
  /// `writing` says.
  std::string decode(std::span<const int32_t> ids, Writing writing = {}) const;
  /// How a sentence is written; empty for subwords, which keep this information.
  Writing writing(std::string_view sentence) const;
  /// The token of every id, special tokens included, as on the axes of a heat map.
  std::vector<std::string> tokens(std::span<const int32_t> ids) const;
  /// For every token of encode(sentence), the index of the blank-separated word it comes from.
  std::vector<int32_t> word_of_token(std::string_view sentence) const;

  /// The most bytes a sentence may have: subwords have a limit.
  size_t most_bytes() const;
  int32_t size() const;
  int32_t unk() const;
  int32_t pad() const;
  int32_t bos() const;  // -1 if the vocabulary has none
  int32_t eos() const;
  /// The vocabulary of a word tokenizer, else null.
  const Vocabulary* vocabulary() const;
  /// Whether its tokens have no capitals: the text is lower-cased, or already was.
  bool is_lower() const;
  /// Null unless it is a pretrained model's.
  const PretrainedTokenizer* pretrained() const;

  /// Writes tokenizer.NAME.txt (one line: "words RULE" or "words RULE french"; "subwords lower" or "subwords cased",
  /// then the normalisation if there is one; "pretrained marian ROWS BEGIN END PAD") and vocab.NAME.txt, NAME.model, or
  /// the files of the pretrained folder in a folder `tokenizer`.
  void save(const std::string& folder, const std::string& name) const;
  static Tokenizer load(const std::string& folder, const std::string& name);

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::vector<Word> split(std::string_view sentence) const;
  EncodedText encoded(std::string_view sentence) const;
  NormalizedSentence prepared(std::string_view sentence) const;
  bool is_hidden(int32_t id) const { return id == pad() || id == bos() || id == eos(); }
  std::shared_ptr<const State> state_;
};

}  // namespace qkv
