// Forced decoding of two files, block by block: the attention of all lines at once could fill the memory.
#include "qkv/cli/translate_force.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/core/counts.h"
#include "qkv/report/translations.h"

namespace qkv::cli {
namespace {

constexpr int64_t kPairsAtOnce = 1024, kPairsWithAttention = 64;

// Totals over all lines.
struct Total {
  double log_probability = 0;
  uint64_t tokens = 0, lines = 0, skipped = 0;

  void add(const ForcedTranslation& t) {
    if (t.target.empty()) {
      ++skipped;
      return;
    }
    log_probability += t.forced.log_probability();
    tokens += t.target.size();
    ++lines;
  }
  void print(const Global& global) const {
    const Text result =
        tr("perplexity {perplexity:.4f}: log p {log_p:.4f} over {tokens} of {lines}",
           "perplexity"_a = std::exp(-log_probability / static_cast<double>(tokens)), "log_p"_a = log_probability,
           "tokens"_a = token_count(tokens), "lines"_a = line_count(lines));
    if (tokens > 0) fmt::print(stderr, "{}\n", result.in(global.language));  // even with --quiet
    if (skipped > 0) global.note(tr("{lines} not counted: one side is empty", "lines"_a = line_count(skipped)));
  }
};

}  // namespace

void print_forced(const Translator& translator, const ForceRequest& request, const Global& global) {
  SentencePairs all;
  all.target = read_text_lines(request.reference);
  all.source = read_text_lines(request.source);
  check_same_lines(request.source, all.source.size(), request.reference, all.target.size());
  const Text source_name = input_name(request.source), target_name = input_name(request.reference);
  UnknownWords unknown(global);
  Total total;
  const int64_t at_once = request.attention ? kPairsWithAttention : kPairsAtOnce;
  for (int64_t begin = 0; begin < all.size(); begin += at_once) {
    const SentencePairs pairs = all.part(begin, at_once);
    const auto first_line = static_cast<size_t>(begin) + 1;
    const auto forced = translator.force(pairs, {.rows = request.rows,
                                                 .keep_attention = request.attention,
                                                 .source_name = source_name,
                                                 .target_name = target_name,
                                                 .first_line = first_line});
    for (size_t i = 0; i < forced.size(); ++i) {
      const ForcedTranslation& t = forced[i];
      const size_t line = first_line + i;
      unknown.note(translator.tokenizers().source, pairs.source[i], t.source,
                   tr("{file}: line {line}", "file"_a = source_name, "line"_a = line));
      unknown.note(translator.tokenizers().target, pairs.target[i], t.target,
                   tr("{file}: line {line}", "file"_a = target_name, "line"_a = line));
      total.add(t);
      const report::TranslationPlace place{.file = "", .line = line, .attention = request.attention};
      if (request.json)
        fmt::print("{}\n", report::to_json(translator, pairs.source[i], pairs.target[i], t, place));
      else if (t.target.empty())
        fmt::print("\n");
      else
        fmt::print("{:.4f}\n", t.forced.log_probability());
    }
  }
  std::fflush(stdout);
  total.print(global);
}

}  // namespace qkv::cli
