// qkv score: scores translations with BLEU, chrF and the book's BLEU, with intervals and paired tests.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/cli/command.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_text.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/core/suggest.h"
#include "qkv/data/text.h"
#include "qkv/eval/metrics.h"
#include "qkv/report/language.h"
#include "qkv/report/scores.h"

namespace qkv::cli {
namespace {

using report::Lines;

class Score : public Command {
 public:
  std::string name() const override { return "score"; }
  Text summary() const override {
    return tr("BLEU, chrF and d2l-bleu of translations, with intervals and paired tests; perplexity of texts");
  }
  std::string example() const override {
    return "qkv score --ref ref.txt hyp.txt --metric bleu,chrf --bootstrap\n  qkv score --model runs/lm text.txt";
  }

  void bind(Options& o) override {
    o.positionals(
        "HYP",
        tr("translations, one per line (default, or -: standard input); several files are compared with the first; "
           "with --model: texts"),
        hypotheses_);
    o.option("--model DIR",
             tr("a language model, from qkv train or pretrained: print the perplexity, nats per token and bits per "
                "character of texts instead"),
             model_);
    o.option("--ref FILE", tr("reference translations; may be repeated"), references_);
    o.option("--metric LIST", tr("comma-separated list of {metrics}", "metrics"_a = listed(metric_names())), metric_);
    o.option("--tokenize NAME", tr("BLEU's tokeniser, as in sacreBLEU"), options_.bleu.tokenizer);
    o.flag("--lowercase", tr("lower-case everything first"), options_.lowercase);
    o.option("--smooth NAME", tr("how BLEU smooths a precision of 0"), options_.bleu.smoothing);
    o.option("--smooth-value X", tr("parameter of floor (0.1) and add-k (1)"), options_.bleu.smooth_value, 0);
    o.option("--d2l-k K", tr("longest n-gram of d2l-bleu"), d2l_k_, 1, 100);
    o.flag("--bootstrap", tr("95 % interval from resampled lines (seed 12345 unless --seed is given)"),
           plan_.intervals);
    o.option("--resamples N", tr("number of resamples of bootstrap (1000) or randomization (10000)"), plan_.resamples,
             1, 10'000'000);
    o.option("--test NAME", tr("paired test for several files"), plan_.test);
    o.flag("--sentence", tr("a score for every line, separated by tabs; BLEU uses effective order"),
           options_.bleu.effective_order);
    o.option("--width N", tr("decimals; d2l-bleu, from 0 to 1, has two more"), width_, 0, 15);
    o.flag("--json", tr("print the scores as JSON"), json_);
  }

  int run(const Global& global) override {
    if (!model_.empty()) return score_texts(global);
    options_.d2l_k = static_cast<int>(d2l_k_);
    plan_.decimals = static_cast<int>(width_);
    if (global.seed_given) plan_.seed = global.seed;
    const auto metrics = check_usage();
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
  int score_texts(const Global& global) {
    if (!references_.empty())
      throw UsageError(tr("--model and --ref exclude each other: a language model scores texts on their own"));
    const LanguageGenerator generator(model_);
    note_unfinished(model_, global);
    for (const std::string& path : hypotheses_.empty() ? Lines{"-"} : hypotheses_) {
      const Text name = input_name(path);
      const std::string text = read_whole_text(path);
      const TextScore score = generator.score(text, name);
      note_unknown(generator.unknown(text), name, global);
      fmt::print("{}\n", json_ ? report::to_json(generator, name.in(Language::en), score)
                               : report::to_text(generator, name, score).in(global.language));
    }
    return 0;
  }

  bool by_sentence() const { return options_.bleu.effective_order; }

  std::vector<std::unique_ptr<Metric>> check_usage() {
    if (references_.empty()) throw UsageError(tr("--ref FILE is missing"), tr("qkv score --help shows an example"));
    if (hypotheses_.empty()) hypotheses_.push_back("-");
    const auto inputs = std::count(references_.begin(), references_.end(), "-") +
                        std::count(hypotheses_.begin(), hypotheses_.end(), "-");
    if (inputs > 1)
      throw UsageError(tr("standard input can be read once, but it is given {inputs} times", "inputs"_a = inputs));
    auto metrics = chosen_metrics();
    const BleuOptions& bleu = options_.bleu;
    if (bleu.smooth_value && bleu.smoothing != Smoothing::floor && bleu.smoothing != Smoothing::add_k)
      throw UsageError(tr("--smooth-value belongs to --smooth floor and add-k"));
    if (by_sentence() && hypotheses_.size() > 1)
      throw UsageError(tr("--sentence scores one file, got {hypotheses}", "hypotheses"_a = hypotheses_.size()));
    if (by_sentence() && plan_.intervals) throw UsageError(tr("--sentence and --bootstrap exclude each other"));
    return metrics;
  }

  std::vector<std::unique_ptr<Metric>> chosen_metrics() const {
    const std::vector<std::string> known = metric_names();
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Metric>> out;
    for (const std::string& name : split(metric_, ',')) {
      if (std::ranges::find(known, name) == known.end())
        throw UsageError(tr("--metric: got \"{name}\", expected a comma-separated list of {known}", "name"_a = name,
                            "known"_a = listed(known)),
                         did_you_mean(name, known));
      if (std::ranges::find(names, name) != names.end())
        throw UsageError(tr("--metric: \"{name}\" is given twice", "name"_a = name));
      names.push_back(name);
      out.push_back(make_metric(name, options_));
      if (references_.size() > out.back()->most_references())
        throw UsageError(tr("{name} is defined for one reference, got {references}", "name"_a = name,
                            "references"_a = references_.size()));
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
    for (const std::string& path : hypotheses_)
      labels.push_back(input_name(path).in(json_ ? Language::en : global.language));
    if (json_) return report::score_json(labels, scores, references.size(), systems[0].size());
    return systems.size() == 1 ? report::score_lines(scores)
                               : report::score_table(labels, scores, plan_.test, global.language);
  }

  // BLEU with 13a on text that was already tokenised is not the BLEU that others report.
  void warn_of_tokenized(const std::vector<Lines>& systems, const Global& global) const {
    constexpr int64_t kMany = 100;
    for (size_t s = 0; s < systems.size(); ++s) {
      const auto apart = std::count_if(systems[s].begin(), systems[s].end(),
                                       [](const std::string& line) { return line.ends_with(" ."); });
      if (apart < kMany) continue;
      const Text name = input_name(hypotheses_[s]);
      global.note(tr("{name}: {apart} lines end in \" .\", so the text seems to be tokenised; BLEU expects plain text",
                     "name"_a = name, "apart"_a = apart));
    }
  }

  // Case is worth many points, and a model trained on lower-cased text loses all of them.
  void say_case(const std::vector<Lines>& systems, const std::vector<Lines>& references, const Global& global) const {
    if (options_.lowercase) return global.note(tr("both sides are compared in lower case"));
    const auto has_capitals = [](const Lines& lines) {
      return std::ranges::any_of(lines, [](const std::string& l) { return lowercase(l) != l; });
    };
    if (!std::ranges::all_of(references, has_capitals)) return;
    for (size_t s = 0; s < systems.size(); ++s) {
      if (has_capitals(systems[s])) continue;
      const Text name = input_name(hypotheses_[s]);
      global.note(tr(
          "{name}: has no capitals, but the references do, and each one counts as an error; --lowercase ignores case",
          "name"_a = name));
    }
  }

  Lines hypotheses_, references_;
  std::string metric_ = "bleu", model_;
  MetricOptions options_;
  report::ScorePlan plan_;
  int64_t d2l_k_ = 2, width_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> score_command() { return std::make_unique<Score>(); }

}  // namespace qkv::cli
