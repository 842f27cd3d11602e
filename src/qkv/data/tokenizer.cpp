// Sentences to ids and back: two kinds behind one type.
#include "qkv/data/tokenizer.h"

#include <optional>

#include "qkv/core/check.h"
#include "qkv/data/corpus.h"
#include "qkv/io/atomic_file.h"

namespace qkv {

struct Tokenizer::State {
  WordRule rule = WordRule::book;
  Vocabulary vocabulary;            // of words
  std::optional<Subwords> subwords;
  bool lowercase = false;           // subwords only: rules of words know for themselves
};

Tokenizer Tokenizer::words(Vocabulary vocabulary, WordRule rule) {
  State state;
  state.rule = rule;
  state.vocabulary = std::move(vocabulary);
  return Tokenizer(std::make_shared<const State>(std::move(state)));
}

Tokenizer Tokenizer::subwords(Subwords model, bool lowercase) {
  State state;
  state.subwords = std::move(model);
  state.lowercase = lowercase;
  return Tokenizer(std::make_shared<const State>(std::move(state)));
}

std::vector<int32_t> Tokenizer::encode(std::string_view sentence) const {
  if (state_->subwords) return state_->subwords->encode(state_->lowercase ? lowercase(sentence) : std::string(sentence));
  std::vector<int32_t> ids;
  for (const Word& word : split_words(sentence, state_->rule)) {
    const int32_t id = state_->vocabulary.id(word.text);
    ids.push_back(is_hidden(id) ? unk() : id);
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<int32_t> shown;
  for (const int32_t id : ids)
    if (!is_hidden(id)) shown.push_back(id);
  return state_->subwords ? state_->subwords->decode(shown) : join_words(tokens(shown), state_->rule);
}

std::vector<std::string> Tokenizer::tokens(std::span<const int32_t> ids) const {
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (const int32_t id : ids) out.push_back(state_->subwords ? state_->subwords->piece(id) : state_->vocabulary.token(id));
  return out;
}

std::vector<int32_t> Tokenizer::word_of_token(std::string_view sentence) const {
  std::vector<int32_t> out;
  if (!state_->subwords) {
    for (const Word& word : split_words(sentence, state_->rule)) out.push_back(word.part);
    return out;
  }
  const std::string text = state_->lowercase ? lowercase(sentence) : std::string(sentence);
  const std::vector<std::string_view> words = split_blanks(text);
  int32_t word = 0;
  for (const Piece& piece : state_->subwords->encode_pieces(text)) {
    // A piece belongs to the word of its first letter: the blank in front of a word is its own.
    const auto end_of = [&](int32_t w) { return static_cast<size_t>(words[static_cast<size_t>(w)].end() - text.data()); };
    while (word + 1 < static_cast<int32_t>(words.size()) && end_of(word) <= piece.begin) ++word;
    out.push_back(word);
  }
  return out;
}

int32_t Tokenizer::size() const { return state_->subwords ? state_->subwords->size() : state_->vocabulary.size(); }
int32_t Tokenizer::unk() const { return state_->subwords ? state_->subwords->unk() : state_->vocabulary.unk(); }
int32_t Tokenizer::pad() const { return state_->subwords ? state_->subwords->pad() : state_->vocabulary.pad(); }
int32_t Tokenizer::bos() const { return state_->subwords ? state_->subwords->bos() : state_->vocabulary.bos(); }
int32_t Tokenizer::eos() const { return state_->subwords ? state_->subwords->eos() : state_->vocabulary.eos(); }
const Vocabulary* Tokenizer::vocabulary() const { return state_->subwords ? nullptr : &state_->vocabulary; }

void Tokenizer::save(const std::string& folder, const std::string& name) const {
  const std::string base = folder + "/";
  const std::string kind = state_->subwords ? text("subwords ", state_->lowercase ? "lower" : "cased")
                                            : text("words ", rule_name(state_->rule));
  write_file(base + "tokenizer." + name + ".txt", kind + "\n");
  if (state_->subwords) state_->subwords->save(base + name + ".model");
  else state_->vocabulary.save(base + "vocab." + name + ".txt");
}

Tokenizer Tokenizer::load(const std::string& folder, const std::string& name) {
  const std::string base = folder + "/", path = base + "tokenizer." + name + ".txt";
  const std::vector<std::string> lines = read_lines(path);
  const std::string& kind = lines.front();
  if (lines.size() == 1 && (kind == "subwords lower" || kind == "subwords cased"))
    return subwords(Subwords::load(base + name + ".model"), kind == "subwords lower");
  for (const WordRule rule : {WordRule::book, WordRule::spaces, WordRule::lower, WordRule::words})
    if (lines.size() == 1 && kind == text("words ", rule_name(rule))) return words(Vocabulary::load(base + "vocab." + name + ".txt"), rule);
  fail(path, ": line 1: expected \"words book|spaces|lower|words\" or \"subwords lower|cased\" and nothing more, found \"", kind, "\"");
}

}  // namespace qkv
