// Forced decoding of two files, block by block: attention of all lines at once could fill the memory.
#include "qkv/cli/translate_force.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "qkv/cli/attention_json.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/io/file.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPairsAtOnce = 1024;

Json object(const Translator& translator, const std::string& source, const std::string& reference, const ForcedTranslation& t, size_t line,
            bool attention) {
  Json out = {{"line", line}, {"source", source}, {"reference", reference}};
  out["source_tokens"] = translator.tokenizers().source.tokens(t.source);
  out["tokens"] = translator.tokenizers().target.tokens(t.target);
  out["log_probability"] = t.target.empty() ? Json() : Json(t.forced.log_probability());
  out["log_probabilities"] = t.forced.log_probabilities;
  if (attention && t.forced.attention.defined()) out["attention"] = attention_json<Json>(translator, t.forced.attention);
  return out;
}

// What was counted over all lines.
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
    if (tokens > 0)  // a result, so --quiet does not keep it back
      fmt::print(stderr, "perplexity {:.4f}: log p {:.4f} over {} tokens of {} {}\n", std::exp(-log_probability / static_cast<double>(tokens)),
                 log_probability, grouped(tokens), grouped(lines), lines == 1 ? "line" : "lines");
    if (skipped > 0 && !quiet)
      fmt::print(stderr, "qkv: note: {} {} without text on both sides: not counted\n", grouped(skipped), skipped == 1 ? "line" : "lines");
  }
};

}  // namespace

void print_forced(const Translator& translator, const ForceRequest& request) {
  const std::vector<std::string> references = read_text_lines(request.reference), sources = read_text_lines(request.source);
  check_same_lines(request.source, sources.size(), request.reference, references.size());
  const std::string source_name = input_name(request.source), target_name = input_name(request.reference);
  UnknownWords unknown(request.quiet);
  Total total;
  for (size_t begin = 0; begin < sources.size(); begin += kPairsAtOnce) {
    const auto block = [&](const std::vector<std::string>& lines) {
      const auto first = lines.begin() + static_cast<std::ptrdiff_t>(begin);
      return std::vector<std::string>(first, first + static_cast<std::ptrdiff_t>(std::min(kPairsAtOnce, lines.size() - begin)));
    };
    const SentencePairs pairs{block(sources), block(references)};
    const auto forced =
        translator.force(pairs, {.rows = request.rows, .source_name = source_name, .target_name = target_name, .first_line = begin + 1});
    for (size_t i = 0; i < forced.size(); ++i) {
      const ForcedTranslation& t = forced[i];
      const size_t line = begin + i + 1;
      unknown.note(translator.tokenizers().source, pairs.source[i], t.source, fmt::format("{}: line {}", source_name, line));
      unknown.note(translator.tokenizers().target, pairs.target[i], t.target, fmt::format("{}: line {}", target_name, line));
      total.add(t);
      if (request.json) fmt::print("{}\n", object(translator, pairs.source[i], pairs.target[i], t, line, request.attention).dump());
      else if (t.target.empty()) fmt::print("\n");
      else fmt::print("{:.4f}\n", t.forced.log_probability());
    }
  }
  std::fflush(stdout);
  total.print(request.quiet);
}

}  // namespace qkv::cli
