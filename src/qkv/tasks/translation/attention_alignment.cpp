// The links of every map and step, and how informative they are.
#include "qkv/tasks/translation/attention_alignment.h"

#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "qkv/core/check.h"
#include "qkv/data/text.h"

namespace qkv {
namespace {

// (steps, maps, T) without its first step: row t is the step that reads target token t.
Tensor one_step_later(const Tensor& attention) {
  const int64_t row = attention.size(1) * attention.size(2);
  return attention.part(row, {attention.size(0) - 1, attention.size(1), attention.size(2)});
}

}  // namespace

std::vector<AlignmentReading> all_readings(int64_t maps) {
  std::vector<AlignmentReading> out;
  for (int64_t map = 0; map < maps; ++map)
    for (const int shift : {0, 1}) out.push_back({map, shift});
  return out;
}

std::vector<std::vector<Alignment>> read_alignments(const Tokenizers& tokenizers, const SentencePairs& pairs,
                                                    std::span<const ForcedTranslation> forced,
                                                    std::span<const AlignmentReading> readings, LinkRule rule,
                                                    AlignmentUnit unit) {
  check(forced.size() == pairs.source.size(), "[read_alignments] ", forced.size(), " forced translations for ",
        pairs.source.size(), " pairs");
  std::vector<std::vector<Alignment>> out(readings.size(), std::vector<Alignment>(forced.size()));
  std::set<int> shifts;
  for (const AlignmentReading& reading : readings) shifts.insert(reading.shift);
  for (size_t i = 0; i < forced.size(); ++i) {
    if (forced[i].source.empty() || forced[i].target.empty()) continue;
    const Tensor& attention = forced[i].forced.attention;
    check(attention.defined(), "[read_alignments] the model has no attention");
    for (const int shift : shifts) {  // the target ends with <eos>, so every word has a next step
      const Tensor weights = word_attention(shift == 0 ? attention : one_step_later(attention), tokenizers.source,
                                            pairs.source[i], tokenizers.target, pairs.target[i], unit);
      const int64_t cells = weights.size(1) * weights.size(2);
      for (size_t r = 0; r < readings.size(); ++r) {
        if (readings[r].shift != shift) continue;
        check(readings[r].map >= 0 && readings[r].map < weights.size(0), "[read_alignments] map ", readings[r].map,
              " of ", weights.size(0));
        out[r][i] = align_words(weights.part(readings[r].map * cells, {weights.size(1), weights.size(2)}), rule);
      }
    }
  }
  return out;
}

Tensor alignment_weights(const Tokenizers& tokenizers, const SentencePairs& pairs, size_t i,
                         const ForcedTranslation& forced, const AlignmentReading& reading, AlignmentUnit unit) {
  const Tensor& attention = forced.forced.attention;
  if (forced.source.empty() || forced.target.empty() || !attention.defined()) return {};
  const Tensor weights = word_attention(reading.shift == 0 ? attention : one_step_later(attention), tokenizers.source,
                                        pairs.source[i], tokenizers.target, pairs.target[i], unit);
  const Shape size{weights.size(1), weights.size(2)};
  return weights.part(reading.map * weights.size(1) * weights.size(2), size);
}

double link_information(const SentencePairs& pairs, std::span<const Alignment> alignments) {
  std::map<std::string, double> of_source, of_target;
  std::map<std::pair<std::string, std::string>, double> of_both;
  double links = 0;
  const auto each = [&](const auto& f) {
    for (size_t i = 0; i < alignments.size(); ++i) {
      const auto source = split_blanks(pairs.source[i]),
                 target = split_blanks(pairs.target[i]);  // links count blank-separated words
      for (const AlignmentLink& link : alignments[i])
        f(std::string(source.at(static_cast<size_t>(link.source))),
          std::string(target.at(static_cast<size_t>(link.target))));
    }
  };
  each([&](const std::string& s, const std::string& t) {
    ++of_source[s], ++of_target[t], ++of_both[{s, t}];
    ++links;
  });
  if (links == 0) return 0;
  double sum = 0;
  each([&](const std::string& s, const std::string& t) {
    const double expected = of_target[t] / links;
    sum += std::log((of_both[{s, t}] - 1 + expected) / of_source[s] /
                    expected);  // of_source without this link, plus the added one
  });
  return sum / links;
}

}  // namespace qkv
