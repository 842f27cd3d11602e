// Lists of words, and the error for a word that is not in the list.
#include "qkv/core/names.h"

#include "qkv/core/suggest.h"

namespace qkv {

std::string listed(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += text(i ? between : "", words[i]);
  return out;
}

std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

void refuse_word(std::string_view where, std::string_view word, const std::vector<std::string>& known) {
  throw Error(tr("{where}: got \"{word}\", expected one of {known}", "where"_a = where, "word"_a = word,
                 "known"_a = listed(known)),
              did_you_mean(word, known));
}

}  // namespace qkv
