// Finds the words of a text that became <unk>.
#include "qkv/cli/unknown_words.h"

#include <algorithm>

#include "qkv/data/text.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/pretrained/folder.h"

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
                        const Text& where) {
  constexpr int kMostNotes = 10;
  if (global_->quiet || notes_ > kMostNotes || std::find(ids.begin(), ids.end(), tokenizer.unk()) == ids.end()) return;
  if (notes_++ == kMostNotes) return global_->note(tr("more lines have unknown words"));
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
  const auto first = [](std::vector<std::string> all) {
    const size_t more = all.size() - std::min(all.size(), kMostWords);
    all.resize(all.size() - more);
    const std::string list = printable(listed(all));
    return more == 0 ? verbatim(list) : tr("{list} and {more} more", "list"_a = list, "more"_a = more);
  };
  global_->note(known.empty()
                    ? tr("{where}: not in the vocabulary: {words}", "where"_a = where, "words"_a = first(words))
                    : tr("{where}: not in the vocabulary: {words} (it has: {known})", "where"_a = where,
                         "words"_a = first(words), "known"_a = first(known)));
}

void note_unfinished(const std::string& folder, const Global& global) {
  if (is_pretrained_folder(folder)) return;
  const std::string weights = run_weights(folder);
  if (!weights.ends_with("/model.safetensors"))
    global.note(
        tr("the run is not finished; its weights so far are used: {weights}", "weights"_a = printable(weights)));
}

}  // namespace qkv::cli
