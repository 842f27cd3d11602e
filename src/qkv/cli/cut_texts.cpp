// Says how many texts were cut off, and which is the first.
#include "qkv/cli/cut_texts.h"

#include "qkv/core/numbers.h"

namespace qkv::cli {

void note_cut(std::span<const int64_t> left_out, const Global& global) {
  size_t texts = 0, first = 0;
  uint64_t tokens = 0;
  for (size_t i = 0; i < left_out.size(); ++i) {
    if (left_out[i] == 0) continue;
    if (texts++ == 0) first = i;
    tokens += static_cast<uint64_t>(left_out[i]);
  }
  if (texts == 0) return;
  if (texts == 1)
    global.note(tr("text {number} is cut off: its last {tokens} tokens were not read", "number"_a = first + 1,
                   "tokens"_a = grouped(tokens)));
  else
    global.note(tr("{texts} texts are cut off, the first is text {number}: {tokens} tokens were not read",
                   "texts"_a = grouped(texts), "number"_a = first + 1, "tokens"_a = grouped(tokens)));
}

}  // namespace qkv::cli
