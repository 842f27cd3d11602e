// Lists of words, and the error for a word that is not among them.
#include "qkv/core/names.h"

#include "qkv/core/suggest.h"

namespace qkv {

std::string listed(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += text(i ? between : "", words[i]);
  return out;
}

void refuse_word(std::string_view where, std::string_view word, const std::vector<std::string>& known) {
  throw Error(text(where, ": got \"", word, "\", expected one of ", listed(known)), did_you_mean(word, known));
}

}  // namespace qkv
