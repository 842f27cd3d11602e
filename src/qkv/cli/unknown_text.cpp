// Lists what became <unk>.
#include "qkv/cli/unknown_text.h"

#include "qkv/data/text.h"

namespace qkv::cli {

void note_unknown(std::vector<std::string> words, const Text& where, const Global& global) {
  constexpr size_t kMostUnknown = 20;
  if (global.quiet || words.empty()) return;
  const size_t more = words.size() - std::min(words.size(), kMostUnknown);
  words.resize(words.size() - more);
  const std::string list = printable(listed(words));
  global.note(
      tr("{where}: not in the vocabulary: {words}", "where"_a = where,
         "words"_a = more == 0 ? verbatim(list) : tr("{list} and {more} more", "list"_a = list, "more"_a = more)));
}

}  // namespace qkv::cli
