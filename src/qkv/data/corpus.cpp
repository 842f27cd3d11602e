// Files of sentences and sentence pairs, plain or gzipped.
#include "qkv/data/corpus.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>

#include "qkv/core/check.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/data/shuffle.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"
#include "qkv/io/gzip.h"

namespace qkv {
namespace {

constexpr size_t kPart = size_t{1} << 20;

// Unpacks all members of a gzip file, or its first `lines` lines. The output grows with the actual data, never by a
// size from a header.
std::string gunzip(const InputFile& file, uint64_t limit, int64_t lines) {
  const uint64_t plausible = limits::kFreeUnpacked + limits::kUnpackedRatio * file.size();
  GzipStream stream(file);
  std::string part(kPart, '\0'), text;
  while (const size_t got = stream.read(std::as_writable_bytes(std::span(part.data(), part.size())))) {
    require(got <= limit - text.size(), "{file}: unpacks to more than {limit} bytes", "file"_a = file.path(),
            "limit"_a = grouped(limit));
    require(text.size() + got <= plausible,
            "{file}: {packed} bytes unpack to more than {plausible}; text does not compress that well",
            "file"_a = file.path(), "packed"_a = grouped(file.size()), "plausible"_a = grouped(plausible));
    text.append(part, 0, got);
    if (lines < 0) continue;
    for (size_t end = text.size() - got; (end = text.find('\n', end)) != std::string::npos; ++end)
      if (--lines <= 0) return text.substr(0, end + 1);
  }
  return text;
}

std::string raw_text(const std::string& path, uint64_t limit, int64_t lines) {
  const InputFile file(path);
  require(file.size() > 0, "{path}: is empty, expected text", "path"_a = path);
  if (is_gzip(file)) return gunzip(file, limit, lines);  // UTF-8 text cannot begin like this
  require(file.size() <= limit, "{path}: has {size} bytes, expected at most {limit}", "path"_a = path,
          "size"_a = grouped(file.size()), "limit"_a = grouped(limit));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

// Calls f(line, number) for every line of the text; a line end at the end of the text does not start another line.
template <class F>
void each_line(std::string_view text, F&& f) {
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (!f(text.substr(at, end - at), ++number)) return;
    at = end + 1;
  }
}

// Sentences with the same key must stay in the same part of a split.
std::string source_key(const std::string& sentence) {
  std::string key;
  for (const Word& word : split_words(sentence, WordRule::lower)) key += word.text + ' ';
  return key;
}

}  // namespace

std::string read_text(const std::string& path, uint64_t limit, int64_t lines) {
  std::string text = raw_text(path, limit, lines);
  require(!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF"), "{path}: is UTF-16, expected UTF-8",
          "path"_a = path);
  check_utf8(text, path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.find("\r\n") != std::string::npos) {
    size_t to = 0;
    for (size_t from = 0; from < text.size(); ++from)
      if (text[from] != '\r' || from + 1 == text.size() || text[from + 1] != '\n') text[to++] = text[from];
    text.resize(to);
  }
  require(!text.empty(), "{path}: is empty, expected text", "path"_a = path);
  return text;
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  each_line(text, [&](std::string_view line, int64_t) {
    lines.emplace_back(line);
    return true;
  });
  return lines;
}

void check_columns(std::string_view line, const std::string& path, int64_t number, ThirdColumn third) {
  const auto columns = 1 + std::count(line.begin(), line.end(), '\t');
  if (columns == 2 || (columns == 3 && third == ThirdColumn::ignore)) return;
  require(columns > 1, "{path}: line {number}: has 1 column, expected two separated by a tab", "path"_a = path,
          "number"_a = number);
  throw Error(
      tr("{path}: line {number}: has {columns} columns, expected two separated by a tab", "path"_a = path,
         "number"_a = number, "columns"_a = columns),
      columns == 3 ? tr("newer Tatoeba files have a third column; they do not give the book's numbers") : Text());
}

SentencePairs SentencePairs::part(int64_t begin, int64_t count) const {
  const int64_t end = std::min(begin + count, size());
  return {{source.begin() + begin, source.begin() + end}, {target.begin() + begin, target.begin() + end}};
}

SentencePairs read_pairs(const std::string& tsv_path, int64_t limit, ThirdColumn third) {
  check(limit >= -1, "[read_pairs] the limit is ", limit, ", expected -1 (all) or more");
  const std::string text = read_text(tsv_path, limits::kTextBytes, limit);
  SentencePairs pairs;
  each_line(text, [&](std::string_view line, int64_t number) {
    if (limit >= 0 && number > limit) return false;
    check_columns(line, tsv_path, number, third);
    const size_t tab = line.find('\t'), end = std::min(line.find('\t', tab + 1), line.size());
    pairs.source.emplace_back(line.substr(0, tab));
    pairs.target.emplace_back(line.substr(tab + 1, end - tab - 1));
    return true;
  });
  return pairs;
}

SentencePairs read_aligned(const std::string& source_path, const std::string& target_path) {
  SentencePairs pairs{read_lines(source_path), read_lines(target_path)};
  require(pairs.source.size() == pairs.target.size(),
          "{source_path} has {source}, {target_path} has {target}: line-aligned files need the same number of lines",
          "source_path"_a = source_path, "source"_a = line_count(pairs.source.size()), "target_path"_a = target_path,
          "target"_a = pairs.target.size());
  return pairs;
}

void write_pairs(const std::string& path, const SentencePairs& pairs) {
  std::string text;
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    for (const std::string* sentence : {&pairs.source[i], &pairs.target[i]})
      require(sentence->find_first_of("\t\n\r") == std::string::npos,
              "{path}: pair {i} has a tab or a line end inside a sentence", "path"_a = path, "i"_a = i + 1);
    text += pairs.source[i] + '\t' + pairs.target[i] + '\n';
  }
  write_file(path, text);
}

Split split_by_source(const SentencePairs& pairs, int64_t validation, int64_t test, uint64_t seed) {
  check(pairs.source.size() == pairs.target.size(), "[split] ", pairs.source.size(), " sources and ",
        pairs.target.size(), " targets");
  check(validation >= 0 && test >= 0, "[split] sizes are ", validation, " and ", test, ", expected 0 or more");
  std::unordered_map<std::string, size_t> group_of;
  std::vector<std::vector<int64_t>> groups;  // indices of the pairs of each source
  for (int64_t i = 0; i < pairs.size(); ++i) {
    const auto [at, is_new] = group_of.try_emplace(source_key(pairs.source[static_cast<size_t>(i)]), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(i);
  }
  Split split;
  const auto take = [](std::vector<int64_t>& part, const std::vector<int64_t>& group) {
    part.insert(part.end(), group.begin(), group.end());
  };
  for (const int64_t g : shuffled(static_cast<int64_t>(groups.size()), Rng(seed).at("split"))) {
    const std::vector<int64_t>& group = groups[static_cast<size_t>(g)];
    if (std::ssize(split.test) < test)
      take(split.test, group);
    else if (std::ssize(split.validation) < validation)
      take(split.validation, group);
    else
      take(split.train, group);
  }
  require(!split.train.empty() && std::ssize(split.test) >= test && std::ssize(split.validation) >= validation,
          "[split] {pairs} pairs of {sources} sources are too few for {validation} validation pairs, {test} test pairs "
          "and a training set",
          "pairs"_a = pairs.size(), "sources"_a = groups.size(), "validation"_a = validation, "test"_a = test);
  for (std::vector<int64_t>* part : {&split.train, &split.validation, &split.test})
    std::sort(part->begin(), part->end());
  return split;
}

SentencePairs select(const SentencePairs& pairs, const std::vector<int64_t>& numbers) {
  SentencePairs out;
  for (const int64_t i : numbers) {
    out.source.push_back(pairs.source[static_cast<size_t>(i)]);
    out.target.push_back(pairs.target[static_cast<size_t>(i)]);
  }
  return out;
}

}  // namespace qkv
