// Edit distance with neighbour swaps (optimal string alignment).
#include "qkv/core/suggest.h"

#include <algorithm>
#include <vector>

#include "qkv/core/check.h"

namespace qkv {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before2(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before2.swap(before);
    before.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before2[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  if (word.size() > 100) return "";
  std::string best;
  int least = (static_cast<int>(word.size()) + 2) / 3 + 1;  // about one edit per three letters
  for (const std::string& candidate : known) {
    const bool begun = word.size() >= 2 && candidate.starts_with(word);
    const int distance = begun ? 1 : edit_distance(word, candidate);
    if (distance < least && distance < static_cast<int>(candidate.size())) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

Text did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? Text() : tr("did you mean \"{near}\"?", "near"_a = near);
}

}  // namespace qkv
