// qkv score: BLEU, chrF and the book's BLEU of translations against references, with intervals and paired tests.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/cli/score_report.h"
#include "qkv/cli/text_input.h"
#include "qkv/core/suggest.h"
#include "qkv/data/text.h"
#include "qkv/eval/bleu.h"
#include "qkv/eval/chrf.h"
#include "qkv/eval/d2l_bleu.h"

namespace qkv::cli {
namespace {

using Lines = std::vector<std::string>;

const std::vector<std::string> kMetrics = {"bleu", "chrf", "chrf++", "d2l-bleu"};

std::vector<std::string> metric_names(const std::string& list, Language language) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    if (std::find(kMetrics.begin(), kMetrics.end(), name) == kMetrics.end())
      throw UsageError(text("--metric: got \"", name, "\", expected some of bleu, chrf, chrf++, d2l-bleu, with commas between"),
                       did_you_mean(nearest_word(name, kMetrics), language));
    if (std::find(names.begin(), names.end(), name) != names.end()) throw UsageError(text("--metric: \"", name, "\" is given twice"));
    names.push_back(name);
    begin = end + 1;
  }
  return names;
}

class Score : public Command {
 public:
  std::string name() const override { return "score"; }
  Text summary() const override {
    return {"BLEU, chrF and d2l-bleu of translations, with intervals and paired tests", "译文的 BLEU、chrF 与 d2l-bleu，含置信区间与成对检验"};
  }
  std::string example() const override { return "qkv score --ref ref.txt hyp.txt --metric bleu,chrf --bootstrap"; }

  void bind(Options& o) override {
    o.positionals("HYP", {"translations, a line each; - or none: standard input; several are compared with the first",
                          "译文，每行一句；- 或缺省为标准输入；给出多个时与第一个比较"}, hypotheses_);
    o.option("--ref FILE", {"reference translations; may be repeated", "参考译文；可重复给出"}, references_);
    o.option("--metric LIST", {"some of bleu, chrf, chrf++, d2l-bleu, with commas between", "bleu、chrf、chrf++、d2l-bleu 中的若干个，以逗号分隔"},
             metric_);
    o.option("--tokenize NAME", {"tokeniser of BLEU, as in sacreBLEU", "BLEU 的分词方式，同 sacreBLEU"}, tokenizer_);
    o.flag("--lowercase", {"lower-case everything first", "先全部转为小写"}, lowercase_);
    o.option("--smooth NAME", {"what BLEU puts for a precision of 0", "BLEU 对零精度的平滑方法"}, smooth_);
    o.option("--smooth-value X", {"of floor (0.1) and add-k (1)", "floor（0.1）与 add-k（1）的参数"}, smooth_value_, 0);
    o.option("--d2l-k K", {"longest n-gram of d2l-bleu", "d2l-bleu 的最长 n 元组"}, d2l_k_, 1, 100);
    o.flag("--bootstrap", {"95 % interval from resampled lines (seed 12345 unless --seed gives another)",
                           "由重采样得到 95% 置信区间（种子默认 12345，可用 --seed 指定）"}, bootstrap_);
    o.option("--resamples N", {"of bootstrap (1000) or of randomization (10000)", "自助法（1000）或随机化（10000）的次数"}, resamples_, 1,
             10'000'000);
    o.option("--test NAME", {"paired test of several files", "多个文件的成对检验方法"}, test_, {"bootstrap", "randomization"});
    o.flag("--sentence", {"a score for every line, with tabs between; BLEU with effective order",
                          "每行一个分数，以制表符分隔；BLEU 采用有效阶"}, sentence_);
    o.option("--width N", {"decimals; d2l-bleu, which goes to 1, has two more", "小数位数；d2l-bleu（上限为 1）多两位"}, width_, 0, 15);
    o.flag("--json", {"print the scores as JSON", "以 JSON 打印分数"}, json_);
  }

  int run(const Global& global) override {
    const auto names = check_usage(global.language);
    std::vector<Lines> references, systems;
    for (const std::string& path : references_) references.push_back(read_text_lines(path));
    for (const std::string& path : hypotheses_) {
      systems.push_back(read_text_lines(path));
      for (size_t r = 0; r < references.size(); ++r) check_same_lines(path, systems.back().size(), references_[r], references[r].size());
    }
    if (!global.quiet) warn_of_tokenized(systems, global), say_case(systems, references, global);
    if (sentence_) {
      print_sentences(names, systems[0], references);
      return 0;
    }
    std::vector<MetricScores> scores;
    const uint64_t seed = global.seed_given ? global.seed : kSignificanceSeed;
    for (const std::string& name : names) scores.push_back(scored(name, systems, references, seed));
    Lines labels;
    labels.reserve(hypotheses_.size());
    for (const std::string& path : hypotheses_) labels.push_back(input_name(path));
    if (json_) fmt::print("{}", score_json(labels, scores, references.size(), systems[0].size()));
    else if (systems.size() == 1) fmt::print("{}", score_lines(scores));
    else fmt::print("{}", score_table(labels, scores, test_, global.language));
    return 0;
  }

 private:
  std::vector<std::string> check_usage(Language language) {
    if (references_.empty()) throw UsageError("--ref FILE is missing", "qkv score --help shows an example");
    if (hypotheses_.empty()) hypotheses_.push_back("-");
    const auto inputs = std::count(references_.begin(), references_.end(), "-") + std::count(hypotheses_.begin(), hypotheses_.end(), "-");
    if (inputs > 1) throw UsageError(text("standard input can be read once, but it is given ", inputs, " times"));
    auto names = metric_names(metric_, language);
    const bool has_d2l = std::find(names.begin(), names.end(), "d2l-bleu") != names.end();
    if (has_d2l && references_.size() > 1) throw UsageError(text("d2l-bleu is defined for one reference, got ", references_.size()));
    if (smooth_value_ && smooth_ != Smoothing::floor && smooth_ != Smoothing::add_k) throw UsageError("--smooth-value belongs to --smooth floor and add-k");
    if (sentence_ && hypotheses_.size() > 1) throw UsageError(text("--sentence scores one file, got ", hypotheses_.size()));
    if (sentence_ && bootstrap_) throw UsageError("--sentence and --bootstrap exclude each other");
    return names;
  }

  std::unique_ptr<Metric> make(const std::string& name) const {
    if (name == "chrf") return std::make_unique<Chrf>(ChrfOptions{.lowercase = lowercase_});
    if (name == "chrf++") return std::make_unique<Chrf>(ChrfOptions{.word_order = 2, .lowercase = lowercase_});
    if (name == "d2l-bleu") return std::make_unique<D2lBleu>(D2lBleuOptions{static_cast<int>(d2l_k_), lowercase_});
    return std::make_unique<Bleu>(BleuOptions{.tokenizer = tokenizer_,
                                              .smoothing = smooth_,
                                              .smooth_value = smooth_value_,
                                              .lowercase = lowercase_,
                                              .effective_order = sentence_});
  }

  int digits(const std::string& name) const { return static_cast<int>(width_) + (name == "d2l-bleu" ? 2 : 0); }

  MetricScores scored(const std::string& name, const std::vector<Lines>& systems, const std::vector<Lines>& references,
                      uint64_t seed) const {
    const auto metric = make(name);
    const bool paired = systems.size() > 1, by_bootstrap = paired && test_ == "bootstrap", by_swaps = paired && !by_bootstrap;
    Resampling resampling{.seed = seed};
    if (bootstrap_ || by_bootstrap) resampling.bootstrap = by_swaps ? kBootstrapSamples : resamples_.value_or(kBootstrapSamples);
    if (by_swaps) resampling.randomization = resamples_.value_or(kRandomizationTrials);

    MetricScores out{metric->name(), signature(*metric, references.size(), resampling), digits(name), {}};
    SegmentCounts first;
    std::vector<double> first_samples;
    for (const Lines& system : systems) {
      SegmentCounts counts = count_segments(*metric, system, references);
      const std::vector<double> sums = counts.sums();
      SystemScore& score = out.systems.emplace_back(SystemScore{metric->score(sums), metric->detail(sums), {}, {}});
      std::vector<double> samples;
      if (resampling.bootstrap > 0) {
        samples = bootstrap_scores(*metric, counts, resampling.bootstrap, seed);
        score.interval = interval95(samples);
      }
      if (out.systems.size() == 1) {
        first = std::move(counts);
        first_samples = std::move(samples);
      } else if (by_bootstrap) {
        score.p_value = paired_bootstrap_p(first_samples, samples, score.value - out.systems[0].value);
      } else {
        score.p_value = paired_randomization_p(*metric, first, counts, resampling.randomization, seed);
      }
    }
    return out;
  }

  void print_sentences(const std::vector<std::string>& names, const Lines& system, const std::vector<Lines>& references) const {
    std::vector<std::unique_ptr<Metric>> metrics;
    std::vector<SegmentCounts> counts;
    for (const std::string& name : names) {
      metrics.push_back(make(name));
      counts.push_back(count_segments(*metrics.back(), system, references));
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::string table = "line";
    for (const auto& metric : metrics) table += "\t" + metric->name();
    for (size_t line = 0; line < system.size(); ++line) {
      table += fmt::format("\n{}", line + 1);
      nlohmann::ordered_json entry = {{"line", line + 1}};
      for (size_t m = 0; m < metrics.size(); ++m) {
        const double value = metrics[m]->score(counts[m].row(line));
        table += fmt::format("\t{:.{}f}", value, digits(names[m]));
        entry[metrics[m]->name()] = value;
      }
      if (json_) list.push_back(std::move(entry));
    }
    fmt::print("{}\n", json_ ? nlohmann::ordered_json{{"sentences", std::move(list)}}.dump() : table);
  }

  // BLEU of 13a on text that was tokenised before is not the BLEU that others report.
  void warn_of_tokenized(const std::vector<Lines>& systems, const Global& global) const {
    constexpr int64_t kMany = 100;
    if (tokenizer_ == BleuTokenizer::none || metric_.find("bleu") == std::string::npos || metric_ == "d2l-bleu") return;
    for (size_t s = 0; s < systems.size(); ++s) {
      const auto apart = std::count_if(systems[s].begin(), systems[s].end(), [](const std::string& line) { return line.ends_with(" ."); });
      if (apart < kMany) continue;
      const std::string name = input_name(hypotheses_[s]);
      const Text note{text(name, ": ", apart, " lines end in \" .\", so it seems to be tokenised; BLEU is meant for plain text"),
                      text(name, "：有 ", apart, " 行以 \" .\" 结尾，似乎已经分词；BLEU 应使用未分词的文本")};
      fmt::print(stderr, "qkv: note: {}\n", note.in(global.language));
    }
  }

  // Case decides many points, and a model of lower-cased text loses all of them.
  void say_case(const std::vector<Lines>& systems, const std::vector<Lines>& references, const Global& global) const {
    if (lowercase_) {
      const Text note{"both sides are compared in lower case", "两侧均先转为小写再比较"};
      fmt::print(stderr, "qkv: note: {}\n", note.in(global.language));
      return;
    }
    const auto has_capitals = [](const Lines& lines) { return std::ranges::any_of(lines, [](const std::string& l) { return lowercase(l) != l; }); };
    if (!std::ranges::all_of(references, has_capitals)) return;
    for (size_t s = 0; s < systems.size(); ++s) {
      if (has_capitals(systems[s])) continue;
      const std::string name = input_name(hypotheses_[s]);
      const Text note{text(name, ": has no capitals, and the references have some: each counts as an error; --lowercase compares without case"),
                      text(name, "：没有大写字母而参考译文有，每处都算错；--lowercase 可忽略大小写")};
      fmt::print(stderr, "qkv: note: {}\n", note.in(global.language));
    }
  }

  Lines hypotheses_, references_;
  BleuTokenizer tokenizer_ = BleuTokenizer::v13a;
  Smoothing smooth_ = Smoothing::exp;
  std::string metric_ = "bleu", test_ = "bootstrap";
  std::optional<double> smooth_value_;
  std::optional<int64_t> resamples_;
  int64_t d2l_k_ = 2, width_ = 1;
  bool lowercase_ = false, bootstrap_ = false, sentence_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> score_command() { return std::make_unique<Score>(); }

}  // namespace qkv::cli
