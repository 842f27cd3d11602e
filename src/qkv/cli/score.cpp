// qkv score: BLEU, chrF and the book's BLEU of translations against references, with intervals and paired tests.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/cli/command.h"
#include "qkv/cli/text_input.h"
#include "qkv/core/suggest.h"
#include "qkv/data/text.h"
#include "qkv/eval/metrics.h"
#include "qkv/report/scores.h"

namespace qkv::cli {
namespace {

using report::Lines;

class Score : public Command {
 public:
  std::string name() const override { return "score"; }
  Text summary() const override {
    return {"BLEU, chrF and d2l-bleu of translations, with intervals and paired tests",
            "译文的 BLEU、chrF 与 d2l-bleu，含置信区间与成对检验"};
  }
  std::string example() const override { return "qkv score --ref ref.txt hyp.txt --metric bleu,chrf --bootstrap"; }

  void bind(Options& o) override {
    o.positionals("HYP",
                  {"translations, a line each; - or none: standard input; several are compared with the first",
                   "译文，每行一句；- 或缺省为标准输入；给出多个时与第一个比较"},
                  hypotheses_);
    o.option("--ref FILE", {"reference translations; may be repeated", "参考译文；可重复给出"}, references_);
    o.option("--metric LIST",
             {text("some of ", listed(metric_names()), ", with commas between"),
              text(listed(metric_names(), "、"), " 中的若干个，以逗号分隔")},
             metric_);
    o.option("--tokenize NAME", {"tokeniser of BLEU, as in sacreBLEU", "BLEU 的分词方式，同 sacreBLEU"},
             options_.bleu.tokenizer);
    o.flag("--lowercase", {"lower-case everything first", "先全部转为小写"}, options_.lowercase);
    o.option("--smooth NAME", {"what BLEU puts for a precision of 0", "BLEU 对零精度的平滑方法"},
             options_.bleu.smoothing);
    o.option("--smooth-value X", {"of floor (0.1) and add-k (1)", "floor（0.1）与 add-k（1）的参数"},
             options_.bleu.smooth_value, 0);
    o.option("--d2l-k K", {"longest n-gram of d2l-bleu", "d2l-bleu 的最长 n 元组"}, d2l_k_, 1, 100);
    o.flag("--bootstrap",
           {"95 % interval from resampled lines (seed 12345 unless --seed gives another)",
            "由重采样得到 95% 置信区间（种子默认 12345，可用 --seed 指定）"},
           plan_.intervals);
    o.option("--resamples N",
             {"of bootstrap (1000) or of randomization (10000)", "自助法（1000）或随机化（10000）的次数"},
             plan_.resamples, 1, 10'000'000);
    o.option("--test NAME", {"paired test of several files", "多个文件的成对检验方法"}, plan_.test);
    o.flag("--sentence",
           {"a score for every line, with tabs between; BLEU with effective order",
            "每行一个分数，以制表符分隔；BLEU 采用有效阶"},
           options_.bleu.effective_order);
    o.option("--width N", {"decimals; d2l-bleu, which goes to 1, has two more", "小数位数；d2l-bleu（上限为 1）多两位"},
             width_, 0, 15);
    o.flag("--json", {"print the scores as JSON", "以 JSON 打印分数"}, json_);
  }

  int run(const Global& global) override {
    options_.d2l_k = static_cast<int>(d2l_k_), plan_.decimals = static_cast<int>(width_);
    if (global.seed_given) plan_.seed = global.seed;
    const auto metrics = check_usage(global.language);
    std::vector<Lines> references, systems;
    for (const std::string& path : references_) references.push_back(read_text_lines(path));
    for (const std::string& path : hypotheses_) {
      systems.push_back(read_text_lines(path));
      for (size_t r = 0; r < references.size(); ++r)
        check_same_lines(path, systems.back().size(), references_[r], references[r].size());
    }
    if (std::ranges::any_of(metrics, [](const auto& metric) { return metric->tokenizes(); }))
      warn_of_tokenized(systems, global);
    say_case(systems, references, global);
    fmt::print("{}", result(metrics, systems, references, global));
    return 0;
  }

 private:
  bool by_sentence() const { return options_.bleu.effective_order; }

  std::vector<std::unique_ptr<Metric>> check_usage(Language language) {
    if (references_.empty()) throw UsageError("--ref FILE is missing", "qkv score --help shows an example");
    if (hypotheses_.empty()) hypotheses_.push_back("-");
    const auto inputs = std::count(references_.begin(), references_.end(), "-") +
                        std::count(hypotheses_.begin(), hypotheses_.end(), "-");
    if (inputs > 1) throw UsageError(text("standard input can be read once, but it is given ", inputs, " times"));
    auto metrics = chosen_metrics(language);
    const BleuOptions& bleu = options_.bleu;
    if (bleu.smooth_value && bleu.smoothing != Smoothing::floor && bleu.smoothing != Smoothing::add_k)
      throw UsageError("--smooth-value belongs to --smooth floor and add-k");
    if (by_sentence() && hypotheses_.size() > 1)
      throw UsageError(text("--sentence scores one file, got ", hypotheses_.size()));
    if (by_sentence() && plan_.intervals) throw UsageError("--sentence and --bootstrap exclude each other");
    return metrics;
  }

  std::vector<std::unique_ptr<Metric>> chosen_metrics(Language language) const {
    const std::vector<std::string> known = metric_names();
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Metric>> out;
    for (const std::string& name : split(metric_, ',')) {
      if (std::ranges::find(known, name) == known.end())
        throw UsageError(
            text("--metric: got \"", name, "\", expected some of ", listed(known), ", with commas between"),
            did_you_mean(nearest_word(name, known), language));
      if (std::ranges::find(names, name) != names.end())
        throw UsageError(text("--metric: \"", name, "\" is given twice"));
      names.push_back(name);
      out.push_back(make_metric(name, options_));
      if (references_.size() > out.back()->most_references())
        throw UsageError(text(name, " is defined for one reference, got ", references_.size()));
    }
    return out;
  }

  std::string result(const std::vector<std::unique_ptr<Metric>>& metrics, const std::vector<Lines>& systems,
                     const std::vector<Lines>& references, const Global& global) const {
    if (by_sentence()) {
      std::vector<report::SentenceScores> scores;
      for (const auto& metric : metrics)
        scores.push_back(report::sentence_scores(*metric, systems[0], references, plan_.decimals));
      return json_ ? report::sentence_json(scores) : report::sentence_table(scores);
    }
    std::vector<report::MetricScores> scores;
    for (const auto& metric : metrics) scores.push_back(report::scored(*metric, systems, references, plan_));
    Lines labels;
    for (const std::string& path : hypotheses_) labels.push_back(input_name(path));
    if (json_) return report::score_json(labels, scores, references.size(), systems[0].size());
    return systems.size() == 1 ? report::score_lines(scores)
                               : report::score_table(labels, scores, plan_.test, global.language);
  }

  // BLEU of 13a on text that was tokenised before is not the BLEU that others report.
  void warn_of_tokenized(const std::vector<Lines>& systems, const Global& global) const {
    constexpr int64_t kMany = 100;
    for (size_t s = 0; s < systems.size(); ++s) {
      const auto apart = std::count_if(systems[s].begin(), systems[s].end(),
                                       [](const std::string& line) { return line.ends_with(" ."); });
      if (apart < kMany) continue;
      const std::string name = input_name(hypotheses_[s]);
      global.note(
          {text(name, ": ", apart, " lines end in \" .\", so it seems to be tokenised; BLEU is meant for plain text"),
           text(name, "：有 ", apart, " 行以 \" .\" 结尾，似乎已经分词；BLEU 应使用未分词的文本")});
    }
  }

  // Case decides many points, and a model of lower-cased text loses all of them.
  void say_case(const std::vector<Lines>& systems, const std::vector<Lines>& references, const Global& global) const {
    if (options_.lowercase) return global.note({"both sides are compared in lower case", "两侧均先转为小写再比较"});
    const auto has_capitals = [](const Lines& lines) {
      return std::ranges::any_of(lines, [](const std::string& l) { return lowercase(l) != l; });
    };
    if (!std::ranges::all_of(references, has_capitals)) return;
    for (size_t s = 0; s < systems.size(); ++s) {
      if (has_capitals(systems[s])) continue;
      const std::string name = input_name(hypotheses_[s]);
      global.note(
          {text(
               name,
               ": has no capitals, and the references have some: each counts as an error; --lowercase compares without case"),
           text(name, "：没有大写字母而参考译文有，每处都算错；--lowercase 可忽略大小写")});
    }
  }

  Lines hypotheses_, references_;
  std::string metric_ = "bleu";
  MetricOptions options_;
  report::ScorePlan plan_;
  int64_t d2l_k_ = 2, width_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> score_command() { return std::make_unique<Score>(); }

}  // namespace qkv::cli
