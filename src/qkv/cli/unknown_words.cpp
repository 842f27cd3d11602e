// Finds the words of a text that became <unk>.
#include "qkv/cli/unknown_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/data/text.h"
#include "qkv/run/run_folder.h"

namespace qkv::cli {
namespace {

constexpr size_t kMostWords = 20, kMostBytes = 60;

// Cuts between characters.
std::string shortened(std::string word) {
  if (word.size() <= kMostBytes) return word;
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;
  word.resize(end);
  return word + "...";
}

// Without punctuation at its ends: "(zebras," -> "zebras".
std::string_view without_marks(std::string_view word) {
  constexpr std::string_view kMarks = ".,!?;:\"'()";
  const size_t begin = word.find_first_not_of(kMarks), end = word.find_last_not_of(kMarks);
  return begin == std::string_view::npos ? word : word.substr(begin, end + 1 - begin);
}

// The form that a vocabulary may have instead: lower case, without punctuation.
std::string plain_form(std::string_view word) { return lowercase(without_marks(word)); }

}  // namespace

void UnknownWords::note(const Tokenizer& tokenizer, const std::string& sentence, std::span<const int32_t> ids,
                        const std::string& where) {
  constexpr int kMostNotes = 10;
  if (quiet_ || notes_ > kMostNotes || std::find(ids.begin(), ids.end(), tokenizer.unk()) == ids.end()) return;
  if (notes_++ == kMostNotes) {
    fmt::print(stderr, "qkv: note: more lines have unknown words\n");
    return;
  }
  const auto parts = split_blanks(sentence);
  const auto part = tokenizer.word_of_token(sentence);
  std::vector<std::string> words, known;  // each word once; known: it has another form
  for (size_t i = 0; i < part.size(); ++i) {
    if (ids[i] != tokenizer.unk() || static_cast<size_t>(part[i]) >= parts.size()) continue;
    std::string_view whole = parts[static_cast<size_t>(part[i])];
    const bool cut = (i > 0 && part[i - 1] == part[i]) || (i + 1 < part.size() && part[i + 1] == part[i]);
    if (cut && tokenizer.vocabulary()) whole = without_marks(whole);  // punctuation marks are separate words
    const std::string word = shortened(std::string(whole));
    if (std::find(words.begin(), words.end(), word) != words.end()) continue;
    words.push_back(word);
    const std::string plain = plain_form(word);
    const auto plain_ids = tokenizer.encode(plain);
    if (plain != word && !plain_ids.empty() &&
        std::find(plain_ids.begin(), plain_ids.end(), tokenizer.unk()) == plain_ids.end())
      known.push_back(plain);
  }
  const auto listed = [](const std::vector<std::string>& all) {
    std::string list;
    for (size_t i = 0; i < std::min(all.size(), kMostWords); ++i) list += (list.empty() ? "" : ", ") + all[i];
    return list + (all.size() > kMostWords ? fmt::format(" and {} more", all.size() - kMostWords) : "");
  };
  std::string list = listed(words);
  if (!known.empty()) list += fmt::format(" (it has: {})", listed(known));
  fmt::print(stderr, "qkv: note: {}: not in the vocabulary: {}\n", where, printable(list));
}

void note_unfinished(const std::string& folder, bool quiet) {
  const std::string weights = run_weights(folder);
  if (!quiet && !weights.ends_with("/model.safetensors"))
    fmt::print(stderr, "qkv: note: the run is not finished; its weights so far are used: {}\n", printable(weights));
}

}  // namespace qkv::cli
