// Words that became <unk>, as they stand in the text.
#include "qkv/cli/unknown_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/data/text.h"

namespace qkv::cli {

void UnknownWords::note(const Tokenizer& tokenizer, const std::string& sentence, std::span<const int32_t> ids, const std::string& where) {
  constexpr int kMostNotes = 10;
  if (quiet_ || notes_ > kMostNotes || std::find(ids.begin(), ids.end(), tokenizer.unk()) == ids.end()) return;
  if (notes_++ == kMostNotes) {
    fmt::print(stderr, "qkv: note: more lines have unknown words\n");
    return;
  }
  const auto parts = split_blanks(sentence);
  const auto part = tokenizer.word_of_token(sentence);
  std::string list;
  for (size_t i = 0; i < part.size(); ++i)
    if (ids[i] == tokenizer.unk() && static_cast<size_t>(part[i]) < parts.size())
      list += (list.empty() ? "" : ", ") + std::string(parts[static_cast<size_t>(part[i])]);
  fmt::print(stderr, "qkv: note: {}: not in the vocabulary: {}\n", where, printable(list));
}

}  // namespace qkv::cli
