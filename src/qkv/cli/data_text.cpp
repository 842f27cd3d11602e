// qkv data vocab, subwords, split: prepares your own text for training.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "qkv/cli/data.h"
#include "qkv/cli/text_input.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corpus.h"
#include "qkv/data/subwords.h"
#include "qkv/data/tokenizer.h"
#include "qkv/io/atomic_file.h"

namespace qkv::cli {
namespace {

// The sentences of all files: their lines, or one column of their pairs.
std::vector<std::string> sentences_of(const std::vector<std::string>& files, std::optional<int64_t> column) {
  std::vector<std::string> all;
  for (const std::string& file : files) {
    std::vector<std::string> part;
    if (column) {
      SentencePairs pairs = read_pairs(file);
      part = std::move(*column == 1 ? pairs.source : pairs.target);
    } else {
      part = read_lines(file);
    }
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

void check_output(const std::string& output, const std::vector<std::string>& files) {
  if (output.empty()) throw UsageError(tr("the option --output is missing"));
  refuse_overwriting(output, files);
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

class Vocab : public Command {
 public:
  std::string name() const override { return "data vocab"; }
  Text summary() const override { return tr("a vocabulary of the words of text files"); }
  std::string example() const override { return "qkv data vocab train.de --rule words --min-count 2 -o vocab.de.txt"; }
  void bind(Options& o) override {
    o.positionals("FILE", tr("text files to read, .gz or not"), files_, 1);
    o.option("-o,--output FILE", tr("where to write; without it the words are printed"), output_);
    o.option("--rule R",
             tr("how to split words: the book's rule; at blanks; at blanks, in lower case; words and punctuation"),
             rule_);
    o.option("--min-count N", tr("leave out rarer words"), min_count_, 1, INT64_MAX);
    o.option("--column N", tr("read this column of tab-separated files (1: source, 2: target)"), column_, 1, 2);
  }

  int run(const Global& global) override {
    if (output_) refuse_overwriting(*output_, files_);
    std::vector<std::vector<std::string>> lines;
    size_t all = 0, unknown = 0;
    for (const std::string& sentence : sentences_of(files_, column_)) {
      std::vector<std::string>& line = lines.emplace_back();
      for (Word& word : split_words(sentence, rule_)) line.push_back(std::move(word.text));
      all += line.size();
    }
    if (all == 0) refuse("{files}: has no words", "files"_a = files_.front());
    const Vocabulary vocabulary = Vocabulary::build(lines, min_count_);
    if (!output_) {
      for (int32_t i = 0; i < vocabulary.size(); ++i) std::printf("%s\n", vocabulary.token(i).c_str());
      return 0;
    }
    vocabulary.save(*output_);
    for (const auto& line : lines)
      for (const std::string& word : line) unknown += !vocabulary.contains(word);
    const std::string share = fmt::format("{:.1f} %", 100 * static_cast<double>(unknown) / static_cast<double>(all));
    const std::string size = grouped(static_cast<size_t>(vocabulary.size()));
    global.say(tr("{output}: {size} tokens; {share} of {all} words are unknown", "output"_a = *output_, "size"_a = size,
                  "share"_a = share, "all"_a = grouped(all)));
    return 0;
  }

 private:
  std::vector<std::string> files_;
  std::optional<std::string> output_;
  WordRule rule_ = WordRule::book;
  int64_t min_count_ = 2;
  std::optional<int64_t> column_;
};

class SubwordData : public Command {
 public:
  std::string name() const override { return "data subwords"; }
  Text summary() const override { return tr("a SentencePiece model of text files"); }
  std::string example() const override { return "qkv data subwords train.de train.en --size 8000 -o shared.model"; }
  void bind(Options& o) override {
    o.positionals("FILE", tr("text files to read, .gz or not"), files_, 1);
    o.option("-o,--output FILE", tr("where to write"), output_);
    o.option("--model M", tr("the kind of model"), options_.kind);
    o.option("--size N", tr("number of subwords, including the four special ones"), size_, 1, 2'000'000);
    o.flag("--lowercase", tr("lower-case the text first"), lowercase_);
    o.option("--column N", tr("read this column of tab-separated files (1: source, 2: target)"), column_, 1, 2);
  }

  int run(const Global& global) override {
    check_output(output_, files_);
    std::vector<std::string> sentences = sentences_of(files_, column_);
    if (lowercase_)
      for (std::string& sentence : sentences) sentence = lowercase(sentence);
    options_.size = static_cast<int32_t>(size_);
    const Subwords model = subwords_of(sentences, options_);
    model.save(output_);
    size_t words = 0, pieces = 0;
    for (const std::string& sentence : sentences) {
      words += split_blanks(sentence).size();
      pieces += model.encode(sentence).size();
    }
    const std::string ratio = fmt::format("{:.2f}", static_cast<double>(pieces) / static_cast<double>(words));
    const std::string size = grouped(static_cast<size_t>(model.size()));
    global.say(
        tr("{output}: {size} pieces, {ratio} per word", "output"_a = output_, "size"_a = size, "ratio"_a = ratio));
    return 0;
  }

 private:
  std::vector<std::string> files_;
  std::string output_;
  SubwordOptions options_;
  int64_t size_ = options_.size;
  bool lowercase_ = false;
  std::optional<int64_t> column_;
};

class SplitData : public Command {
 public:
  std::string name() const override { return "data split"; }
  Text summary() const override { return tr("sentence pairs as train, validation and test sets"); }
  std::string example() const override { return "qkv data split pairs.tsv --validation 1000 --test 1000 -o parts"; }
  void bind(Options& o) override {
    o.positionals("FILE", tr("a file of tab-separated pairs, or two line-aligned files"), files_, 1);
    o.option("-o,--output DIR", tr("the folder to write to"), folder_);
    o.option("--validation N", tr("minimum number of validation pairs"), validation_, 0, INT64_MAX);
    o.option("--test N", tr("minimum number of test pairs"), test_, 0, INT64_MAX);
    o.option("--alignments FILE", tr("word links to split along with the pairs"), alignments_);
  }

  int run(const Global& global) override {
    if (files_.size() > 2) throw UsageError(tr("unexpected argument \"{left}\"", "left"_a = files_[2]));
    check_output(folder_, files_);
    const bool aligned = files_.size() == 2;
    const SentencePairs pairs = aligned ? read_aligned(files_[0], files_[1]) : read_pairs(files_[0]);
    const std::vector<std::string> alignments = alignments_ ? read_lines(*alignments_) : std::vector<std::string>();
    if (alignments_ && std::ssize(alignments) != pairs.size())
      refuse("{alignments} has {lines}, {file} has {pairs}", "alignments"_a = *alignments_,
             "lines"_a = line_count(alignments.size()), "file"_a = files_[0],
             "pairs"_a = pair_count(static_cast<uint64_t>(pairs.size())));
    const auto [source, target] = aligned ? endings(files_) : std::pair<std::string, std::string>(".tsv", ".tsv");
    const std::string part_endings[] = {source, target, ".align"};
    std::vector<std::string> inputs = files_;
    if (alignments_) inputs.push_back(*alignments_);
    for (const char* part : {"train", "validation", "test"})
      for (const std::string& ending : part_endings) refuse_overwriting(folder_ + "/" + part + ending, inputs);
    const Split split = split_by_source(pairs, validation_, test_, global.seed);
    make_folder(folder_);
    const auto write_part = [&](const std::string& name, const std::vector<int64_t>& numbers) {
      const std::string base = folder_ + "/" + name;
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
      if (alignments_) write_lines(base + ".align", alignments, numbers);
    };
    write_part("train", split.train);
    write_part("validation", split.validation);
    write_part("test", split.test);
    const std::string train = grouped(split.train.size()), validation = grouped(split.validation.size()),
                      test = grouped(split.test.size());
    global.say(
        tr("{folder}: train {train}, validation {validation}, test {test} pairs; no source sentence is in two parts",
           "folder"_a = folder_, "train"_a = train, "validation"_a = validation, "test"_a = test));
    return 0;
  }

 private:
  std::vector<std::string> files_;
  std::string folder_;
  int64_t validation_ = 1000, test_ = 1000;
  std::optional<std::string> alignments_;
};

}  // namespace

std::unique_ptr<Command> data_vocab() { return std::make_unique<Vocab>(); }
std::unique_ptr<Command> data_subwords() { return std::make_unique<SubwordData>(); }
std::unique_ptr<Command> data_split() { return std::make_unique<SplitData>(); }

}  // namespace qkv::cli
