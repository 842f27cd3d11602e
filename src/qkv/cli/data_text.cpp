// qkv data vocab, subwords, split: prepares your own text for training.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "qkv/cli/data.h"
#include "qkv/cli/text_input.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corpus.h"
#include "qkv/data/tokenizer.h"
#include "qkv/io/atomic_file.h"

namespace qkv::cli {
namespace {

// The sentences of all files: their lines, or one column of their pairs.
std::vector<std::string> sentences_of(const DataOptions& o) {
  std::vector<std::string> all;
  for (const std::string& file : o.files) {
    std::vector<std::string> part;
    if (o.column) {
      SentencePairs pairs = read_pairs(file);
      part = std::move(*o.column == 1 ? pairs.source : pairs.target);
    } else {
      part = read_lines(file);
    }
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

const std::string& needed_output(const DataOptions& o) {
  if (!o.output) throw UsageError(tr("data {name}: --output is missing", "name"_a = o.name));
  refuse_overwriting(*o.output, o.files);
  return *o.output;
}

void write_lines(const std::string& path, const std::vector<std::string>& lines, const std::vector<int64_t>& numbers) {
  std::string out;
  for (const int64_t i : numbers) out += lines[static_cast<size_t>(i)] + '\n';
  write_file(path, out);
}

// "train.de" -> ".de"; two files without different endings become .source and .target.
std::pair<std::string, std::string> endings(const std::vector<std::string>& files) {
  const auto ending = [](std::string name) {
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    return std::filesystem::path(name).extension().string();
  };
  const std::string a = ending(files[0]), b = ending(files[1]);
  if (a.empty() || b.empty() || a == b) return {".source", ".target"};
  return {a, b};
}

// A size that the text cannot give is refused with the nearest possible one as the hint.
Subwords subwords_of(const std::vector<std::string>& sentences, const SubwordOptions& options) {
  try {
    return Subwords::train(sentences, options);
  } catch (const SubwordSizeError& e) {
    throw Error(e.message(), verbatim(text("--size ", e.nearest())));
  }
}

}  // namespace

int data_vocab(const DataOptions& o, const Global& global) {
  if (o.output) refuse_overwriting(*o.output, o.files);
  const WordRule rule = o.rule.value_or(WordRule::book);
  std::vector<std::vector<std::string>> lines;
  size_t all = 0;
  for (const std::string& sentence : sentences_of(o)) {
    std::vector<std::string>& line = lines.emplace_back();
    for (Word& word : split_words(sentence, rule)) line.push_back(std::move(word.text));
    all += line.size();
  }
  if (all == 0) refuse("{files}: has no words", "files"_a = o.files.front());
  const Vocabulary vocabulary = Vocabulary::build(lines, o.min_count.value_or(2));
  if (!o.output) {
    for (int32_t i = 0; i < vocabulary.size(); ++i) std::printf("%s\n", vocabulary.token(i).c_str());
    return 0;
  }
  vocabulary.save(*o.output);
  size_t unknown = 0;
  for (const auto& line : lines)
    for (const std::string& word : line) unknown += !vocabulary.contains(word);
  const std::string share = fmt::format("{:.1f} %", 100 * static_cast<double>(unknown) / static_cast<double>(all));
  const std::string size = grouped(static_cast<size_t>(vocabulary.size()));
  global.say(tr("{output}: {size} tokens; {share} of {all} words are unknown", "output"_a = *o.output, "size"_a = size,
                "share"_a = share, "all"_a = grouped(all)));
  return 0;
}

int data_subwords(const DataOptions& o, const Global& global) {
  const std::string& output = needed_output(o);
  std::vector<std::string> sentences = sentences_of(o);
  if (o.lowercase)
    for (std::string& sentence : sentences) sentence = lowercase(sentence);
  SubwordOptions options;
  options.kind = o.model.value_or(SubwordKind::bpe);
  options.size = static_cast<int32_t>(o.size.value_or(options.size));
  const Subwords model = subwords_of(sentences, options);
  model.save(output);
  size_t words = 0, pieces = 0;
  for (const std::string& sentence : sentences) {
    words += split_blanks(sentence).size();
    pieces += model.encode(sentence).size();
  }
  const std::string ratio = fmt::format("{:.2f}", static_cast<double>(pieces) / static_cast<double>(words));
  const std::string size = grouped(static_cast<size_t>(model.size()));
  global.say(tr("{output}: {size} pieces, {ratio} per word", "output"_a = output, "size"_a = size, "ratio"_a = ratio));
  return 0;
}

int data_split(const DataOptions& o, const Global& global) {
  const std::string& folder = needed_output(o);
  const bool aligned = o.files.size() == 2;
  const SentencePairs pairs = aligned ? read_aligned(o.files[0], o.files[1]) : read_pairs(o.files[0]);
  const std::vector<std::string> alignments = o.alignments ? read_lines(*o.alignments) : std::vector<std::string>();
  if (o.alignments && std::ssize(alignments) != pairs.size())
    refuse("{alignments} has {alignments_2} lines, {files} has {pairs} pairs", "alignments"_a = *o.alignments,
           "alignments_2"_a = alignments.size(), "files"_a = o.files[0], "pairs"_a = pairs.size());
  const auto [source, target] = aligned ? endings(o.files) : std::pair<std::string, std::string>(".tsv", ".tsv");
  const std::string part_endings[] = {source, target, ".align"};
  std::vector<std::string> inputs = o.files;
  if (o.alignments) inputs.push_back(*o.alignments);
  for (const char* part : {"train", "validation", "test"})
    for (const std::string& ending : part_endings) refuse_overwriting(folder + "/" + part + ending, inputs);
  const Split split = split_by_source(pairs, o.validation.value_or(1000), o.test.value_or(1000), global.seed);
  make_folder(folder);
  const auto write_part = [&](const std::string& name, const std::vector<int64_t>& numbers) {
    const std::string base = folder + "/" + name;
    if (numbers.empty()) {  // a leftover of an earlier split may have sentences of the other parts
      for (const std::string& ending : part_endings) std::filesystem::remove(base + ending);
      return;
    }
    if (aligned) {
      write_lines(base + source, pairs.source, numbers);
      write_lines(base + target, pairs.target, numbers);
    } else {
      write_pairs(base + ".tsv", select(pairs, numbers));
    }
    if (o.alignments) write_lines(base + ".align", alignments, numbers);
  };
  write_part("train", split.train);
  write_part("validation", split.validation);
  write_part("test", split.test);
  const std::string train = grouped(split.train.size()), validation = grouped(split.validation.size()),
                    test = grouped(split.test.size());
  global.say(
      tr("{folder}: train {train}, validation {validation}, test {test} pairs; no source sentence is in two parts",
         "folder"_a = folder, "train"_a = train, "validation"_a = validation, "test"_a = test));
  return 0;
}

}  // namespace qkv::cli
