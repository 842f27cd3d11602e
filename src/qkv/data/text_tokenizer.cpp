// Characters, bytes, and lines of words or subwords.
#include "qkv/data/text_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corpus.h"
#include "qkv/io/atomic_file.h"

namespace qkv {
namespace {

constexpr const char *kName = "text", *kPretrained = "tokenizer";
constexpr std::string_view kBlank = " ", kLine = "\n", kReplacement = "\xEF\xBF\xBD";
constexpr size_t kContext = 8;  // tokens before one that its text may depend on: the beginning of its character

size_t character_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The bytes of the character that begins at `at`; a byte that is not UTF-8 is a character of its own.
std::string_view character_at(std::string_view text, size_t at) { return text.substr(at, character_length(text[at])); }

template <class F>
void each_character(std::string_view text, const F& f) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = character_at(text, at);
    f(c);
    at += c.size();
  }
}

// A file has one character per line.
std::string escaped(const std::string& character) {
  if (character == "\n") return "\\n";
  if (character == "\r") return "\\r";
  if (character == "\\") return "\\\\";
  return character;
}

std::string unescaped(const std::string& line) {
  if (line == "\\n") return "\n";
  if (line == "\\r") return "\r";
  if (line == "\\\\") return "\\";
  return line;
}

std::string shown(const std::string& token) {
  if (token == kBlank) return "␣";
  if (token == kLine) return "⏎";
  return printable(token);
}

void add_once(std::vector<std::string>& list, std::string_view word) {
  if (std::ranges::find(list, word) == list.end()) list.emplace_back(word);
}

}  // namespace

struct TextTokenizer::State {
  std::vector<std::string> characters;  // by id; empty unless tokens are characters
  std::map<std::string, int32_t, std::less<>> id;
  std::optional<Tokenizer> lines;
  std::optional<PretrainedTokenizer> pretrained;
  std::string model_type;  // pretrained only, as are its rows
  int32_t rows = 0;

  bool is_bytes() const { return characters.empty() && !lines && !pretrained; }
  void add(std::string character) {
    id.emplace(character, static_cast<int32_t>(characters.size()));
    characters.push_back(std::move(character));
  }
  int32_t find(std::string_view character) const {
    const auto found = id.find(character);
    return found == id.end() ? 0 : found->second;
  }
};

TextTokenizer TextTokenizer::characters(std::string_view text) {
  std::set<std::string, std::less<>> all;  // the order of bytes is that of code points
  each_character(text, [&](std::string_view c) {
    if (!all.contains(c)) all.emplace(c);
  });
  auto state = std::make_shared<State>();
  state->add(std::string(kUnknown));
  for (const std::string& c : all) state->add(c);
  return TextTokenizer(std::move(state));
}

TextTokenizer TextTokenizer::bytes() { return TextTokenizer(std::make_shared<State>()); }

TextTokenizer TextTokenizer::lines(Tokenizer tokenizer) {
  auto state = std::make_shared<State>();
  state->lines = std::move(tokenizer);
  return TextTokenizer(std::move(state));
}

TextTokenizer TextTokenizer::pretrained(PretrainedTokenizer tokenizer, std::string model_type, int32_t rows) {
  auto state = std::make_shared<State>();
  state->model_type = std::move(model_type);
  state->rows = std::max(rows, tokenizer.size());
  state->pretrained = std::move(tokenizer);
  return TextTokenizer(std::move(state));
}

std::vector<int32_t> TextTokenizer::encode(std::string_view text) const {
  if (state_->pretrained) return state_->pretrained->encode(text).ids();
  std::vector<int32_t> ids;
  if (state_->is_bytes()) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  } else if (!state_->lines) {
    each_character(text, [&](std::string_view c) { ids.push_back(state_->find(c)); });
  } else {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::vector<int32_t> line = state_->lines->encode(text.substr(begin, end - begin));
      ids.insert(ids.end(), line.begin(), line.end());
      if (end < text.size()) ids.push_back(line_end());
      begin = end + 1;
    }
  }
  return ids;
}

std::string TextTokenizer::decode(std::span<const int32_t> ids) const {
  if (state_->pretrained) return state_->pretrained->decode(ids);
  std::string out;
  if (state_->lines) {
    for (size_t begin = 0; begin < ids.size();) {
      size_t end = begin;
      while (end < ids.size() && ids[end] != line_end()) ++end;
      out += state_->lines->decode(ids.subspan(begin, end - begin));
      if (end < ids.size()) out += '\n';
      begin = end + 1;
    }
    return out;
  }
  for (const int32_t id : ids) {
    check(id >= 0 && id < size(), "[text_tokenizer] token ", id, " is not in 0 to ", size() - 1);
    if (state_->is_bytes())
      out += static_cast<char>(id);
    else
      out += state_->characters[static_cast<size_t>(id)];
  }
  return out;
}

std::vector<std::string> TextTokenizer::tokens(std::span<const int32_t> ids) const {
  std::vector<std::string> out;
  if (state_->pretrained) {
    for (const int32_t id : ids) {
      const bool has_text = id < state_->pretrained->size();
      const std::string token = has_text ? state_->pretrained->shown(id) : qkv::text("<", id, ">");
      out.push_back(token.empty() ? shown(std::string(kBlank)) : shown(token));
    }
    return out;
  }
  if (state_->lines) {
    out = state_->lines->tokens(ids);
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == line_end()) out[i] = "⏎";
    return out;
  }
  for (const int32_t id : ids) out.push_back(shown(decode(std::span(&id, 1))));
  return out;
}

std::vector<std::string> TextTokenizer::unknown(std::string_view text) const {
  std::vector<std::string> out;
  if (state_->is_bytes()) return out;
  if (state_->pretrained) {
    if (unk() < 0) return out;
    for (const EncodedToken& token : state_->pretrained->encode(text).tokens)
      if (token.id == unk() && token.end > token.begin)
        add_once(out, text.substr(token.begin, token.end - token.begin));
    return out;
  }
  if (!state_->lines) {
    each_character(text, [&](std::string_view c) {
      if (state_->find(c) == 0) add_once(out, c);
    });
    return out;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::vector<int32_t> ids = state_->lines->encode(line);
    if (std::ranges::find(ids, unk()) != ids.end()) {
      const std::vector<std::string_view> parts = split_blanks(line);
      const std::vector<int32_t> part = state_->lines->word_of_token(line);
      for (size_t i = 0; i < part.size() && i < ids.size(); ++i)
        if (ids[i] == unk() && static_cast<size_t>(part[i]) < parts.size())
          add_once(out, parts[static_cast<size_t>(part[i])]);
    }
    begin = end + 1;
  }
  return out;
}

bool TextTokenizer::is_by_line() const { return state_->lines.has_value(); }

const PretrainedTokenizer* TextTokenizer::pretrained() const {
  return state_->pretrained ? &*state_->pretrained : nullptr;
}

int32_t TextTokenizer::size() const {
  if (state_->pretrained) return state_->rows;
  if (state_->is_bytes()) return 256;
  return state_->lines ? state_->lines->size() : static_cast<int32_t>(state_->characters.size());
}

int32_t TextTokenizer::unk() const {
  if (state_->pretrained) {  // GPT-2 names the end of a text, which text never becomes
    const SpecialIds& special = state_->pretrained->special();
    return special.unk == special.eos ? -1 : special.unk;
  }
  if (state_->is_bytes()) return -1;
  return state_->lines ? state_->lines->unk() : 0;
}

int32_t TextTokenizer::line_end() const {
  if (state_->pretrained) return -1;
  if (state_->is_bytes()) return '\n';
  if (state_->lines) return state_->lines->eos();
  const int32_t id = state_->find(kLine);
  return id == 0 ? -1 : id;
}

int32_t TextTokenizer::begin() const { return state_->pretrained ? state_->pretrained->special().bos : line_end(); }

std::vector<int32_t> TextTokenizer::never() const {
  if (state_->is_bytes()) return {};
  if (state_->pretrained) {  // rows that have no text
    std::vector<int32_t> out;
    for (int32_t id = state_->pretrained->size(); id < state_->rows; ++id) out.push_back(id);
    return out;
  }
  if (state_->lines) return {unk(), state_->lines->pad(), state_->lines->bos()};
  return {unk()};
}

size_t TextTokenizer::most_line_bytes() const { return state_->lines ? state_->lines->most_bytes() : SIZE_MAX; }

void TextTokenizer::save(const std::string& folder) const {
  if (state_->pretrained) {
    state_->pretrained->save(folder + "/" + kPretrained);
    return write_file(folder + "/tokenizer.text.txt",
                      qkv::text("pretrained ", state_->model_type, " ", state_->rows, "\n"));
  }
  if (state_->lines) return state_->lines->save(folder, kName);
  const std::string base = folder + "/";
  write_file(base + "tokenizer.text.txt", state_->is_bytes() ? "bytes\n" : "characters\n");
  if (state_->is_bytes()) return;
  std::string lines;
  for (const std::string& c : state_->characters) lines += escaped(c) + "\n";
  write_file(base + "vocab.text.txt", lines);
}

TextTokenizer TextTokenizer::load(const std::string& folder) {
  const std::string path = folder + "/tokenizer.text.txt", vocabulary = folder + "/vocab.text.txt";
  const std::string kind = read_lines(path).front();
  if (kind == "bytes") return bytes();
  if (const auto parts = split_spaces(kind); parts.size() == 3 && parts[0] == "pretrained") {
    const auto rows = parse_whole_number(std::string(parts[2]), 1, kMostRows);
    require(rows.has_value(), "{path}: line 1: expected \"pretrained MODEL_TYPE ROWS\", found \"{found}\"",
            "path"_a = path, "found"_a = printable(kind));
    const std::string files = folder + "/" + kPretrained;
    const bool llama2c = std::filesystem::exists(files + "/tokenizer.bin");
    const auto size = static_cast<int32_t>(*rows);
    PretrainedTokenizer model = llama2c ? PretrainedTokenizer::open_llama2c(files + "/tokenizer.bin", size)
                                        : PretrainedTokenizer::open(files, parts[1]);
    require(model.size() <= size, "{path}: line 1: {rows} rows, but its tokenizer has {tokens} tokens", "path"_a = path,
            "rows"_a = size, "tokens"_a = model.size());
    return pretrained(std::move(model), std::string(parts[1]), size);
  }
  if (kind != "characters") return lines(Tokenizer::load(folder, kName));
  const std::vector<std::string> file = read_lines(vocabulary);
  require(file.front() == kUnknown, "{path}: line 1: expected {unknown}, found \"{found}\"", "path"_a = vocabulary,
          "unknown"_a = kUnknown, "found"_a = printable(file.front()));
  auto state = std::make_shared<State>();
  for (size_t i = 0; i < file.size(); ++i) {
    const std::string c = unescaped(file[i]);
    require(i == 0 || (!c.empty() && character_at(c, 0).size() == c.size()),
            "{path}: line {line}: expected one character, found \"{found}\"", "path"_a = vocabulary, "line"_a = i + 1,
            "found"_a = printable(file[i]));
    require(!state->id.contains(c), "{path}: line {line}: the character \"{found}\" is repeated", "path"_a = vocabulary,
            "line"_a = i + 1, "found"_a = printable(file[i]));
    state->add(c);
  }
  return TextTokenizer(std::move(state));
}

TextStream::TextStream(TextTokenizer tokenizer, std::span<const int32_t> prompt) : tokenizer_(std::move(tokenizer)) {
  if (tokenizer_.pretrained()) {
    const auto last = prompt.last(std::min(prompt.size(), kContext));
    line_.assign(last.begin(), last.end());
    shown_ = tokenizer_.decode(line_);
    return;
  }
  if (!tokenizer_.is_by_line()) return;
  for (const int32_t id : prompt) {
    if (id == tokenizer_.line_end())
      line_.clear();
    else
      line_.push_back(id);
  }
  shown_ = tokenizer_.decode(line_);
}

std::string TextStream::rest_of_line() {
  const std::string whole = tokenizer_.decode(line_);
  return whole.substr(std::min(shown_.size(), whole.size()));
}

// What the last tokens have added to the text. A character that lacks bytes, and a word that may change, wait for the
// next token, unless this is the `whole` text.
std::string TextStream::grown(bool whole) {
  const std::string text = tokenizer_.decode(line_);
  if (!whole && (text.ends_with(kReplacement) || !text.starts_with(shown_))) return "";
  std::string piece = text.substr(std::min(shown_.size(), text.size()));
  shown_ = text;
  if (line_.size() < 4 * kContext) return piece;
  line_.erase(line_.begin(), line_.end() - static_cast<std::ptrdiff_t>(kContext));
  shown_ = tokenizer_.decode(line_);
  return piece;
}

std::string TextStream::add(int32_t id) {
  if (tokenizer_.pretrained()) {
    line_.push_back(id);
    return grown(false);
  }
  if (tokenizer_.is_by_line()) {
    if (id == tokenizer_.line_end()) {
      const std::string rest = rest_of_line();
      line_.clear();
      shown_.clear();
      return rest + "\n";
    }
    line_.push_back(id);
    const std::string whole = tokenizer_.decode(line_);
    if (!whole.starts_with(shown_)) return "";  // the last word changed: wait for the next
    std::string piece = whole.substr(shown_.size());
    shown_ = whole;
    return piece;
  }
  bytes_ += tokenizer_.decode(std::span(&id, 1));
  // A last character that lacks bytes waits.
  size_t first = bytes_.size();
  while (first > 0 && bytes_.size() - first < 4 && (static_cast<unsigned char>(bytes_[first - 1]) & 0xC0) == 0x80)
    --first;
  if (first > 0) --first;
  const bool whole = first == bytes_.size() || character_at(bytes_, first).size() == character_length(bytes_[first]);
  std::string piece = valid_utf8(std::string_view(bytes_).substr(0, whole ? bytes_.size() : first));
  bytes_.erase(0, whole ? bytes_.size() : first);
  return piece;
}

std::string TextStream::end() {
  if (tokenizer_.pretrained()) return grown(true);
  if (tokenizer_.is_by_line()) return rest_of_line();
  std::string rest = valid_utf8(bytes_);
  bytes_.clear();
  return rest;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bad = find_invalid_utf8(text);
    out += text.substr(0, bad);
    if (bad == std::string::npos) break;
    out += kReplacement;
    text.remove_prefix(bad + 1);
  }
  return out;
}

int64_t count_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace qkv
