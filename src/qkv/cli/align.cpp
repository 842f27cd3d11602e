// qkv align: word alignments from a model's attention, and the error rate of alignments against gold ones.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/cli/text_input.h"
#include "qkv/eval/alignment.h"
#include "qkv/eval/unicode.h"
#include "qkv/io/atomic_file.h"
#include "qkv/tasks/translator.h"
#include "qkv/tasks/word_attention.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int64_t> word_counts(const std::string& path) {
  std::vector<int64_t> counts;
  for (const std::string& line : read_text_lines(path)) counts.push_back(static_cast<int64_t>(split_whitespace(line).size()));
  return counts;
}

std::string percent(const std::optional<double>& value) { return value ? fmt::format("{:.1f} %", 100 * *value) : "undefined"; }
Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

class Align : public Command {
 public:
  std::string name() const override { return "align"; }
  Text summary() const override {
    return {"word alignments from a model's attention, and their error rate against gold ones", "由模型注意力得到词对齐，及其与标准对齐比较的错误率（AER）"};
  }
  std::string example() const override { return "qkv align --model runs/bahdanau --pairs pairs.tsv --gold pairs.align"; }

  void bind(Options& o) override {
    o.option("--model DIR", {"align by the attention of this model (a folder that qkv train wrote)", "用该模型的注意力做对齐（qkv train 输出的文件夹）"}, model_);
    o.option("--pairs FILE", {"with --model: tab-separated sentence pairs; or --source and --target", "与 --model 合用：制表符分隔的句对；或 --source 与 --target"}, pairs_);
    o.option("--rule R", {"with --model: link each target word with the source word of its largest weight; or let source words compete, so that one "
                          "that is taken goes twice only when no other has a tenth of the weight",
                          "与 --model 合用：largest 取权重最大的源词；competing 让源词竞争，已被占用的词只在别无选择时再用"}, rule_, {"competing", "largest"});
    o.option("-o,--output FILE", {"with --model: write the alignments there", "与 --model 合用：把对齐写入该文件"}, output_);
    o.option("--alignment FILE", {"word alignments to score, a sentence a line, links as 1-2; - is standard input",
                                  "待评分的词对齐，每行一句，链接形如 1-2；- 为标准输入"}, alignment_);
    o.option("--gold FILE", {"gold alignments: 1-2 sure, 1p2 or 1?2 possible", "标准对齐：1-2 为确定，1p2 或 1?2 为可能"}, gold_);
    o.option("--base N", {"the first word is 0 or 1 in both files; found out when absent, with a note",
                          "两个文件中第一个词的编号，0 或 1；不给出时自动判断并提示"}, base_, 0, 1);
    o.option("--gold-base N", {"the same of the gold file alone", "仅用于标准对齐文件"}, gold_base_, 0, 1);
    o.option("--source FILE", {"source sentences: links outside of them are refused", "源语言句子：越界的链接会报错"}, source_);
    o.option("--target FILE", {"target sentences", "目标语言句子"}, target_);
    o.flag("--json", {"print the result as JSON", "以 JSON 打印结果"}, json_);
  }

  int run(const Global& global) override {
    if (model_) return align_by_model(global);
    if (!alignment_) throw UsageError("give --alignment FILE to score one, or --model DIR to make one", "qkv align --help shows an example");
    if (pairs_ || output_) throw UsageError("--pairs and --output go with --model");
    if (!gold_) throw UsageError("--gold FILE is missing", "qkv align --help shows an example");
    if (*alignment_ == "-" && *gold_ == "-") throw UsageError("--alignment and --gold cannot both be standard input");
    if (source_.has_value() != target_.has_value()) throw UsageError("--source and --target go together");
    const AlignmentFile alignments = read(*alignment_, base_, "--base", global);
    const AlignmentFile gold = read(*gold_, gold_base_ ? gold_base_ : base_, "--gold-base", global);
    check_same_lines(*alignment_, alignments.lines.size(), *gold_, gold.lines.size());
    if (source_) {
      const auto source = word_counts(*source_), target = word_counts(*target_);
      check_alignment_lengths(alignments, input_name(*alignment_), source, target);
      check_alignment_lengths(gold, input_name(*gold_), source, target);
    }
    print(score_alignments(alignments.lines, gold.lines), gold.lines.size());
    return 0;
  }

 private:
  SentencePairs sentences() const {
    if (pairs_ && source_) throw UsageError("--pairs and --source exclude each other");
    if (pairs_) return read_pairs(*pairs_);
    if (source_ && target_) return read_aligned(*source_, *target_);
    throw UsageError("--model needs sentences: --pairs FILE, or --source FILE and --target FILE");
  }

  int align_by_model(const Global& global) const {
    if (alignment_) throw UsageError("--model and --alignment exclude each other");
    const SentencePairs pairs = sentences();
    std::optional<AlignmentFile> gold;
    if (gold_) {
      gold = read(*gold_, gold_base_ ? gold_base_ : base_, "--gold-base", global);
      check_same_lines(pairs_ ? *pairs_ : *source_, pairs.source.size(), *gold_, gold->lines.size());
    }
    const Translator translator(*model_);
    const Tokenizers& tokenizers = translator.tokenizers();
    const auto forced = translator.force(pairs);
    std::vector<Alignment> alignments;
    std::vector<int64_t> source_words, target_words;
    std::string lines;
    for (size_t i = 0; i < forced.size(); ++i) {
      Alignment links;
      if (!forced[i].source.empty() && !forced[i].target.empty()) {
        const Tensor& attention = forced[i].forced.attention;
        check(attention.defined(), *model_, ": this model has no attention (model.attention is ", translator.config().model.attention, ")");
        const Tensor weights = word_attention(attention, tokenizers.source, pairs.source[i], tokenizers.target, pairs.target[i]);
        links = align_words(weights.viewed({weights.size(1), weights.size(2)}), rule_ == "largest" ? LinkRule::largest : LinkRule::competing);
      }
      source_words.push_back(static_cast<int64_t>(split_whitespace(pairs.source[i]).size()));
      target_words.push_back(static_cast<int64_t>(split_whitespace(pairs.target[i]).size()));
      lines += pharaoh(links) + "\n";
      alignments.push_back(std::move(links));
    }
    if (gold) check_alignment_lengths(*gold, *gold_, source_words, target_words);
    if (output_) write_file(*output_, lines);
    if (gold) print(score_alignments(alignments, gold->lines), gold->lines.size());
    else if (!output_) fmt::print("{}", lines);
    return 0;
  }

  static AlignmentFile read(const std::string& path, const std::optional<int64_t>& base, const char* option, const Global& global) {
    const std::optional<int> known = base ? std::optional<int>(static_cast<int>(*base)) : std::nullopt;
    AlignmentFile file = parse_alignments(read_text_lines(path), input_name(path), known);
    if (file.base_detected && !global.quiet) {
      const Text note = file.base == 0 ? Text{text("an index is 0, so words are counted from 0; ", option, " 0 says so"),
                                              text("有编号为 0，故从 0 开始计数；可用 ", option, " 0 指明")}
                                       : Text{text("no index is 0, so words are taken to be counted from 1; ", option, " decides"),
                                              text("没有编号为 0，视为从 1 开始计数；可用 ", option, " 指定")};
      fmt::print(stderr, "qkv: note: {}: {}\n", input_name(path), note.in(global.language));
    }
    return file;
  }

  void print(const AlignmentScore& score, size_t lines) const {
    if (!json_) {
      fmt::print("AER {}  precision {}  recall {}  F {}  ({} links, gold {} sure and {} possible, {} lines)\n", percent(score.error_rate()),
                 percent(score.precision()), percent(score.recall()), percent(score.f_score()), score.links, score.sure,
                 score.possible - score.sure, lines);
      return;
    }
    const Json json = {{"aer", number_or_null(score.error_rate())}, {"precision", number_or_null(score.precision())},
                       {"recall", number_or_null(score.recall())},  {"f", number_or_null(score.f_score())},
                       {"links", score.links},                      {"sure", score.sure},
                       {"possible", score.possible - score.sure},   {"in_sure", score.in_sure},
                       {"in_sure_or_possible", score.in_possible},  {"lines", lines}};
    fmt::print("{}\n", json.dump());
  }

  std::optional<std::string> alignment_, gold_, source_, target_, model_, pairs_, output_;
  std::string rule_ = "competing";
  std::optional<int64_t> base_, gold_base_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> align_command() { return std::make_unique<Align>(); }

}  // namespace qkv::cli
