// Sentences to ids and back: three kinds with one type.
#include "qkv/data/tokenizer.h"

#include <algorithm>
#include <optional>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/names.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corpus.h"
#include "qkv/io/atomic_file.h"

namespace qkv {

namespace {

constexpr const char* kPretrained = "tokenizer";  // the folder of a pretrained model's files

// A row of the embedding beyond the tokenizer's tokens has a number and no text.
std::string piece_of(const PretrainedTokenizer& tokenizer, int32_t id) {
  return id < tokenizer.size() ? tokenizer.piece(id) : text("<", id, ">");
}

}  // namespace

struct Tokenizer::State {
  WordRule rule = WordRule::book;
  Spacing spacing = Spacing::english;
  Vocabulary vocabulary;  // words only
  WordForms forms;        // of the vocabulary
  std::optional<Subwords> subwords;
  std::optional<PretrainedTokenizer> pretrained;
  Side side = Side::source;  // pretrained only, as are its tokens
  Tokens tokens{-1, -1, -1};
  bool lowercase = false;  // subwords only; word rules include the case
  Normalization form = Normalization::none;
};

Tokenizer Tokenizer::words(Vocabulary vocabulary, WordRule rule, Spacing spacing) {
  State state;
  state.rule = rule;
  state.spacing = spacing;
  state.forms = WordForms(vocabulary);
  // The other rules cut and lower-case themselves.
  if (rule != WordRule::spaces) {
    state.forms.apart = false;
    state.forms.lower = false;
  }
  state.vocabulary = std::move(vocabulary);
  return Tokenizer(std::make_shared<const State>(std::move(state)));
}

Tokenizer Tokenizer::subwords(Subwords model, bool lowercase, Normalization form) {
  State state;
  state.subwords = std::move(model);
  state.lowercase = lowercase;
  state.form = form;
  return Tokenizer(std::make_shared<const State>(std::move(state)));
}

Tokenizer Tokenizer::pretrained(PretrainedTokenizer model, Side side, const Tokens& tokens) {
  State state;
  state.pretrained = std::move(model);
  state.side = side;
  state.tokens = tokens;
  return Tokenizer(std::make_shared<const State>(std::move(state)));
}

EncodedText Tokenizer::encoded(std::string_view sentence) const {
  const EncodeOptions bare{.special = false};
  return state_->side == Side::source ? state_->pretrained->encode(sentence, bare)
                                      : state_->pretrained->encode_target(sentence, bare);
}

// As the subword model reads it.
NormalizedSentence Tokenizer::prepared(std::string_view sentence) const {
  NormalizedSentence out = normalized(sentence, state_->form);
  if (state_->lowercase) out.text = lowercase(out.text);
  return out;
}

// Words in the forms of the vocabulary.
std::vector<Word> Tokenizer::split(std::string_view sentence) const {
  std::vector<Word> out;
  for (const Word& word : split_words(sentence, state_->rule))
    for (std::string& form : state_->forms.words(word.text, state_->vocabulary))
      out.push_back({std::move(form), word.part});
  return out;
}

std::vector<int32_t> Tokenizer::encode(std::string_view sentence) const {
  if (state_->pretrained) return encoded(sentence).ids();
  if (state_->subwords) return state_->subwords->encode(prepared(sentence).text);
  std::vector<int32_t> ids;
  for (const Word& word : split(sentence)) {
    const int32_t id = state_->vocabulary.id(word.text);
    ids.push_back(is_hidden(id) ? unk() : id);
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, Writing writing) const {
  std::vector<int32_t> shown;
  for (const int32_t id : ids)
    if (!is_hidden(id)) shown.push_back(id);
  if (state_->pretrained) {
    std::erase_if(shown, [&](int32_t id) { return id >= state_->pretrained->size(); });
    return state_->pretrained->decode(shown);
  }
  if (state_->subwords) return state_->subwords->decode(shown);
  const bool apart = state_->rule == WordRule::book || state_->forms.apart;
  const std::string text = apart && writing.attached ? join_as_written(tokens(shown), state_->spacing)
                                                     : join_words(tokens(shown), state_->rule);
  return writing.capital && is_lower() ? with_capital(text) : text;
}

Writing Tokenizer::writing(std::string_view sentence) const {
  Writing out;
  if (state_->subwords || state_->pretrained) return out;
  out.capital = begins_with_capital(sentence);
  const std::vector<Word> words = split(sentence);
  bool mark_alone = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool cut =
        (i > 0 && words[i - 1].part == words[i].part) || (i + 1 < words.size() && words[i + 1].part == words[i].part);
    out.attached = out.attached || cut;
    mark_alone = mark_alone || (!cut && is_mark(words[i].text));
  }
  out.attached = out.attached || (out.capital && !mark_alone);  // a sentence without punctuation
  return out;
}

std::vector<std::string> Tokenizer::tokens(std::span<const int32_t> ids) const {
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (const int32_t id : ids)
    out.push_back(state_->pretrained ? piece_of(*state_->pretrained, id)
                  : state_->subwords ? state_->subwords->piece(id)
                                     : state_->vocabulary.token(id));
  return out;
}

std::vector<int32_t> Tokenizer::word_of_token(std::string_view sentence) const {
  std::vector<int32_t> out;
  if (state_->pretrained) {
    for (const EncodedToken& token : encoded(sentence).tokens) out.push_back(std::max(token.word, 0));
    return out;
  }
  if (!state_->subwords) {
    for (const Word& word : split(sentence)) out.push_back(word.part);
    return out;
  }
  const auto [text, part_of_word] = prepared(sentence);
  const std::vector<std::string_view> words = split_blanks(text);
  size_t word = 0;
  for (const Piece& piece : state_->subwords->encode_pieces(text)) {
    // A piece belongs to the word of its first letter: the blank before a word belongs to that word.
    const auto end_of = [&words, start = text.data()](size_t w) { return static_cast<size_t>(words[w].end() - start); };
    while (word + 1 < words.size() && end_of(word) <= piece.begin) ++word;
    out.push_back(word < part_of_word.size() ? part_of_word[word] : 0);
  }
  return out;
}

size_t Tokenizer::most_bytes() const {
  return state_->subwords || state_->pretrained ? limits::kSentenceBytes : SIZE_MAX;
}
int32_t Tokenizer::size() const {
  if (state_->pretrained) return std::max(state_->tokens.rows, state_->pretrained->size());
  return state_->subwords ? state_->subwords->size() : state_->vocabulary.size();
}
int32_t Tokenizer::unk() const {
  if (state_->pretrained) return state_->pretrained->special().unk;
  return state_->subwords ? state_->subwords->unk() : state_->vocabulary.unk();
}
int32_t Tokenizer::pad() const {
  if (state_->pretrained) return state_->tokens.pad;
  return state_->subwords ? state_->subwords->pad() : state_->vocabulary.pad();
}
int32_t Tokenizer::bos() const {
  if (state_->pretrained) return state_->tokens.begin;
  return state_->subwords ? state_->subwords->bos() : state_->vocabulary.bos();
}
int32_t Tokenizer::eos() const {
  if (state_->pretrained) return state_->tokens.end;
  return state_->subwords ? state_->subwords->eos() : state_->vocabulary.eos();
}
const Vocabulary* Tokenizer::vocabulary() const {
  return state_->subwords || state_->pretrained ? nullptr : &state_->vocabulary;
}

bool Tokenizer::is_lower() const {
  if (state_->pretrained) return false;
  if (state_->subwords) return state_->lowercase;
  return state_->rule != WordRule::spaces || state_->forms.lower;
}

const PretrainedTokenizer* Tokenizer::pretrained() const { return state_->pretrained ? &*state_->pretrained : nullptr; }

void Tokenizer::save(const std::string& folder, const std::string& name) const {
  const std::string base = folder + "/";
  if (state_->pretrained) {
    const Tokens& t = state_->tokens;
    state_->pretrained->save(base + kPretrained);
    return write_file(base + "tokenizer." + name + ".txt",
                      text("pretrained marian ", size(), " ", t.begin, " ", t.end, " ", t.pad, "\n"));
  }
  std::string kind =
      state_->subwords ? text("subwords ", state_->lowercase ? "lower" : "cased") : text("words ", state_->rule);
  if (state_->form != Normalization::none) kind += text(" ", state_->form);
  if (state_->spacing == Spacing::french) kind += " french";
  write_file(base + "tokenizer." + name + ".txt", kind + "\n");
  if (state_->subwords)
    state_->subwords->save(base + name + ".model");
  else
    state_->vocabulary.save(base + "vocab." + name + ".txt");
}

Tokenizer Tokenizer::load(const std::string& folder, const std::string& name) {
  const std::string base = folder + "/", path = base + "tokenizer." + name + ".txt";
  const std::vector<std::string> lines = read_lines(path);
  const std::vector<std::string_view> parts = split_spaces(lines.front());
  const std::string_view kind = parts.front(), how = parts.size() > 1 ? parts[1] : "",
                         more = parts.size() > 2 ? parts[2] : "";
  if (lines.size() == 1 && kind == "pretrained" && how == "marian" && parts.size() == 6) {
    const auto number = [&](size_t i, int64_t most) {
      const auto read = parse_whole_number(std::string(parts[i]), 0, most);
      require(read.has_value(), "{path}: line 1: expected a number up to {most}, found \"{found}\"", "path"_a = path,
              "most"_a = most, "found"_a = printable(parts[i]));
      return static_cast<int32_t>(*read);
    };
    const int32_t rows = number(2, kMostRows);
    PretrainedTokenizer model = PretrainedTokenizer::open(base + kPretrained, how);
    require(model.size() <= rows, "{path}: line 1: {rows} rows, but its tokenizer has {tokens} tokens", "path"_a = path,
            "rows"_a = rows, "tokens"_a = model.size());
    return pretrained(
        std::move(model), name == "source" ? Side::source : Side::target,
        {.begin = number(3, rows - 1), .end = number(4, rows - 1), .pad = number(5, rows - 1), .rows = rows});
  }
  const bool ok = lines.size() == 1 && (parts.size() == 2 || (parts.size() == 3 && !more.empty()));
  if (ok && kind == "subwords" && (how == "lower" || how == "cased") &&
      (more.empty() || more == "nfc" || more == "nfkc"))
    return subwords(Subwords::load(base + name + ".model"), how == "lower",
                    more.empty() ? Normalization::none : parse_name<Normalization>(more, path));
  if (ok && kind == "words" && (more.empty() || more == "french"))
    if (const auto rule = find_named<WordRule>(how))
      return words(Vocabulary::load(base + "vocab." + name + ".txt"), *rule,
                   more.empty() ? Spacing::english : Spacing::french);
  refuse(
      "{path}: line 1: expected \"words book|spaces|lower|words [french]\" or \"subwords lower|cased [nfc|nfkc]\" and "
      "nothing more, found \"{found}\"",
      "path"_a = path, "found"_a = lines.front());
}

}  // namespace qkv
