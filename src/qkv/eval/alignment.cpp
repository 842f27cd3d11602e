// Reading and scoring Pharaoh alignments.
#include "qkv/eval/alignment.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "qkv/core/check.h"
#include "qkv/core/counts.h"

namespace qkv {
namespace {

// Reads one index of a link and moves `at` past it.
bool read_index(std::string_view link, size_t& at, int32_t& index) {
  const char* begin = link.data() + at;
  const char* end = link.data() + link.size();
  if (begin == end || *begin < '0' || *begin > '9') return false;  // from_chars would accept "-1"
  const auto [stop, error] = std::from_chars(begin, end, index);
  at = static_cast<size_t>(stop - link.data());
  return error == std::errc();
}

std::optional<AlignmentLink> read_link(std::string_view word) {
  AlignmentLink link;
  size_t at = 0;
  if (!read_index(word, at, link.source) || at == word.size()) return std::nullopt;
  const char mark = word[at++];
  if (mark != '-' && mark != 'p' && mark != '?') return std::nullopt;
  link.possible = mark != '-';
  if (!read_index(word, at, link.target) || at != word.size()) return std::nullopt;
  return link;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view blanks = " \t\r";
  for (size_t begin = line.find_first_not_of(blanks); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blanks, end);
  }
  return words;
}

bool same_pair(const AlignmentLink& a, const AlignmentLink& b) { return a.source == b.source && a.target == b.target; }

// By source, then target; the sure one of two equal pairs first.
bool in_order(const AlignmentLink& a, const AlignmentLink& b) {
  return std::tie(a.source, a.target, a.possible) < std::tie(b.source, b.target, b.possible);
}

std::optional<double> quotient(int64_t above, int64_t below) {
  if (below == 0) return std::nullopt;
  return static_cast<double>(above) / static_cast<double>(below);
}

}  // namespace

AlignmentFile parse_alignments(std::span<const std::string> lines, const Text& file, std::optional<int> base) {
  check(!base || *base == 0 || *base == 1, "[alignment] base must be 0 or 1, got ", base.value_or(0));
  AlignmentFile out;
  bool has_zero = false;
  for (size_t l = 0; l < lines.size(); ++l) {
    Alignment& links = out.lines.emplace_back();
    for (std::string_view word : words_of(lines[l])) {
      const auto link = read_link(word);
      require(link.has_value(), "{file}: line {line}: expected a link like 1-2, 1p2 or 1?2, got \"{word}\"",
              "file"_a = file, "line"_a = l + 1, "word"_a = word);
      const bool zero = link->source == 0 || link->target == 0;
      require(base != 1 || !zero, "{file}: line {line}: the link \"{word}\" has index 0 in a file that counts from 1",
              "file"_a = file, "line"_a = l + 1, "word"_a = word);
      has_zero = has_zero || zero;
      links.push_back(*link);
    }
  }
  out.base_detected = !base;
  out.base = base ? *base : has_zero ? 0 : 1;
  for (Alignment& links : out.lines) {
    for (AlignmentLink& link : links) {
      link.source -= out.base;
      link.target -= out.base;
    }
    std::sort(links.begin(), links.end(), in_order);
    links.erase(std::unique(links.begin(), links.end(), same_pair), links.end());
  }
  return out;
}

void check_alignment_lengths(const AlignmentFile& alignments, const Text& file, std::span<const int64_t> source_lengths,
                             std::span<const int64_t> target_lengths) {
  const size_t lines = alignments.lines.size();
  require(source_lengths.size() == lines && target_lengths.size() == lines,
          "{file} has {lines}, the source {source} and the target {target}", "file"_a = file,
          "lines"_a = line_count(lines), "source"_a = source_lengths.size(), "target"_a = target_lengths.size());
  for (size_t l = 0; l < lines; ++l)
    for (const AlignmentLink& link : alignments.lines[l])
      if (link.source >= source_lengths[l] || link.target >= target_lengths[l])
        refuse(
            "{file}: line {line}: the link \"{link}\" (counted from {base}) is outside of {source} source and {target} "
            "target words",
            "file"_a = file, "line"_a = l + 1,
            "link"_a = text(link.source + alignments.base, link.possible ? '?' : '-', link.target + alignments.base),
            "base"_a = alignments.base, "source"_a = source_lengths[l], "target"_a = target_lengths[l]);
}

std::optional<double> AlignmentScore::error_rate() const {
  const auto right = quotient(in_sure + in_possible, links + sure);
  if (!right) return std::nullopt;
  return 1 - *right;
}

std::optional<double> AlignmentScore::precision() const { return quotient(in_possible, links); }
std::optional<double> AlignmentScore::recall() const { return quotient(in_sure, sure); }

std::optional<double> AlignmentScore::f_score() const {
  const auto p = precision(), r = recall();
  if (!p || !r) return std::nullopt;
  return *p + *r == 0 ? 0 : 2 * *p * *r / (*p + *r);
}

AlignmentScore& AlignmentScore::operator+=(const AlignmentScore& other) {
  links += other.links;
  sure += other.sure;
  possible += other.possible;
  in_sure += other.in_sure;
  in_possible += other.in_possible;
  return *this;
}

AlignmentScore score_alignment(const Alignment& alignment, const Alignment& gold) {
  AlignmentScore score;
  score.possible = static_cast<int64_t>(gold.size());
  for (const AlignmentLink& link : gold) score.sure += link.possible ? 0 : 1;
  score.links = static_cast<int64_t>(alignment.size());
  for (const AlignmentLink& link : alignment) {
    const auto found =
        std::find_if(gold.begin(), gold.end(), [&](const AlignmentLink& g) { return same_pair(g, link); });
    if (found == gold.end()) continue;
    ++score.in_possible;
    if (!found->possible) ++score.in_sure;
  }
  return score;
}

AlignmentScore score_alignments(std::span<const Alignment> alignments, std::span<const Alignment> gold) {
  check(alignments.size() == gold.size(), "[alignment] numbers of lines differ: ", alignments.size(), " and gold ",
        gold.size());
  AlignmentScore score;
  for (size_t l = 0; l < gold.size(); ++l) score += score_alignment(alignments[l], gold[l]);
  return score;
}

}  // namespace qkv
