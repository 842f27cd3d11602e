// Forced decoding of two files, block by block: the attention of all lines at once could fill the memory.
#include "qkv/cli/translate_force.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/core/numbers.h"
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
  void print(bool quiet) const {
    if (tokens > 0)  // a result, so it is printed even with --quiet
      fmt::print(stderr, "perplexity {:.4f}: log p {:.4f} over {} tokens of {} {}\n",
                 std::exp(-log_probability / static_cast<double>(tokens)), log_probability, grouped(tokens),
                 grouped(lines), lines == 1 ? "line" : "lines");
    if (skipped > 0 && !quiet)
      fmt::print(stderr, "qkv: note: {} {} not counted: one side is empty\n", grouped(skipped),
                 skipped == 1 ? "line" : "lines");
  }
};

}  // namespace

void print_forced(const Translator& translator, const ForceRequest& request) {
  SentencePairs all;
  all.target = read_text_lines(request.reference);
  all.source = read_text_lines(request.source);
  check_same_lines(request.source, all.source.size(), request.reference, all.target.size());
  const std::string source_name = input_name(request.source), target_name = input_name(request.reference);
  UnknownWords unknown(request.quiet);
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
                   fmt::format("{}: line {}", source_name, line));
      unknown.note(translator.tokenizers().target, pairs.target[i], t.target,
                   fmt::format("{}: line {}", target_name, line));
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
  total.print(request.quiet);
}

}  // namespace qkv::cli
