// Lab 11.9: a language model becomes a classifier, against one that starts from nothing; and where its layer goes.
#include <algorithm>
#include <array>

#include "qkv/core/parallel.h"
#include "qkv/labs/language.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"

namespace qkv::labs::language {
namespace {

struct Amount {
  int64_t examples, steps, draws;  // draws: how often, with other examples
};
constexpr std::array<Amount, 5> kAmounts = {{{8, 40, 4}, {32, 60, 4}, {128, 100, 2}, {512, 200, 1}, {1024, 300, 1}}};
constexpr size_t kTested = 300;
constexpr size_t kPlaced = 3;  // an index: so many examples where places of the layer are compared; one draw
static_assert(kAmounts[kPlaced].draws == 1);

struct Judges {
  Subjects train, test;
  std::array<double, kAmounts.size()> tuned{}, fresh{};
  double frozen = 0, first = 0, masked_first = 0;  // other places
};

const Judges& judges(Page& page) {
  Judges& all = page.shared<Judges>();
  if (!all.test.beginnings.empty()) return all;
  const Readers& r = readers(page);
  const Rng rng = Rng(page.seed()).at("judges");
  all.test = subjects(r.text, r.text.test).part(0, kTested);
  all.train = subjects(r.text, r.text.labelled).part(0, static_cast<size_t>(kAmounts.back().examples));
  const LanguageModel& causal = r.causal.model;
  const LanguageModel nothing(causal.config, causal.tokens, rng.at("nothing"));
  struct Task {
    const LanguageModel* body;
    JudgePlan plan;
    size_t amount, draw;
    double* mean;  // over the draws
  };
  std::vector<Task> tasks;
  for (size_t a = kAmounts.size(); a-- > 0;)  // the longest first
    for (int64_t draw = 0; draw < kAmounts[a].draws; ++draw) {
      const JudgePlan plan{.steps = kAmounts[a].steps};
      tasks.push_back({&causal, plan, a, static_cast<size_t>(draw), &all.tuned[a]});
      tasks.push_back({&nothing, plan, a, static_cast<size_t>(draw), &all.fresh[a]});
    }
  const int64_t steps = kAmounts[kPlaced].steps;
  tasks.push_back({&causal, {.steps = steps, .rate = 1e-2f, .frozen = true}, kPlaced, 0, &all.frozen});
  tasks.push_back({&causal, {.steps = steps, .at = ReadAt::first}, kPlaced, 0, &all.first});
  tasks.push_back({&r.masked.model, {.steps = steps, .at = ReadAt::first}, kPlaced, 0, &all.masked_first});
  std::vector<double> shares(tasks.size());
  Work work(page, tr("training classifiers"), tasks.size());
  parallel_for(std::ssize(tasks), 1e10, [&](int64_t i) {
    const SerialScope serial;
    const Task& t = tasks[static_cast<size_t>(i)];
    const auto examples = static_cast<size_t>(kAmounts[t.amount].examples);
    shares[static_cast<size_t>(i)] = judge(t.plan, *t.body, all.train.part(t.draw * examples, examples), all.test,
                                           rng.at("training").at(t.amount).at(t.draw));
    work.at(static_cast<size_t>(i), 1);
  });
  for (size_t i = 0; i < tasks.size(); ++i)
    *tasks[i].mean += shares[i] / static_cast<double>(kAmounts[tasks[i].amount].draws);
  return all;
}

std::string words_of(const WordText& text, const std::vector<int32_t>& ids) {
  std::string out;
  for (const std::string& word : text.tokenizer.tokens(ids)) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

void fine_tuning(Page& page) {
  page.heading(tr("From a language model to a classifier"));
  const Readers& r = readers(page);
  const Judges& all = judges(page);
  page.say(tr(
      "Labels cost work, text does not. So learn from text first, then from a few labels: **fine-tuning**. The task: "
      "a sentence breaks off before `is` or `are`; is its subject one or several?"));
  std::string shown;
  for (size_t i = 0; i < 4; ++i)
    shown += text(i > 0 ? "\n" : "", words_of(r.text, all.train.beginnings[i]), " ... ",
                  all.train.several[i] ? "are" : "is");
  page.print(verbatim(shown));
  page.say(tr(
      "The causal model from above, which has read text but no label, gets a layer with two outputs on its state "
      "after the last word; then all of its weights are trained. It had to learn to tell one from several, since the "
      "next word depends on it. The same model with random weights is trained on the same examples, for as many "
      "steps. Neither has read these sentences before; {tested} others are the test, half of them about several.",
      "tested"_a = kTested));
  std::vector<double> counts, tuned, fresh;
  std::vector<std::vector<std::string>> rows;
  for (size_t a = 0; a < kAmounts.size(); ++a) {
    counts.push_back(static_cast<double>(kAmounts[a].examples));
    tuned.push_back(all.tuned[a]);
    fresh.push_back(all.fresh[a]);
    rows.push_back({std::to_string(kAmounts[a].examples), percent(tuned[a]), percent(fresh[a])});
  }
  page.draw("fine-tuning",
            curves({{tr("language model, fine-tuned"), counts, tuned, line_style("bo-")},
                    {tr("from nothing"), counts, fresh, line_style("ro--")},
                    {tr("chance"), {counts.front(), counts.back()}, {0.5, 0.5}, line_style("k:")}},
                   {.label = tr("labels"), .scale = AxisScale::log},
                   {.label = tr("judged correctly"), .low = 0.4, .high = 1}),
            tr("The share of new sentences that are judged correctly, after training with more and more labels. With "
               "few labels, the mean over several sets of them."));
  page.table({tr("labels"), tr("fine-tuned"), tr("from nothing")}, rows);
  page.claim(tuned[1] > fresh[1] + 0.1, tr("With few labels, the model that has read text judges far better."),
             tr("with {few} labels {tuned} and {fresh}", "few"_a = kAmounts[1].examples, "tuned"_a = percent(tuned[1]),
                "fresh"_a = percent(fresh[1])));
  page.claim(tuned[1] > fresh[2], tr("Reading text is worth more than four times as many labels."),
             tr("{few} labels after reading {tuned}, {more} from nothing {fresh}", "few"_a = kAmounts[1].examples,
                "tuned"_a = percent(tuned[1]), "more"_a = kAmounts[2].examples, "fresh"_a = percent(fresh[2])));
}

void where_the_layer_goes(Page& page) {
  page.exercise("11.9.3");
  const Judges& all = judges(page);
  page.say(
      tr("Where would you add layers to fine-tune a language model for classification? On a state that has seen the "
         "whole text: with a causal mask that is the last one; in an encoder it may be any, and BERT puts a class "
         "token first for it. Below, the same {examples} labels each time; a line end comes before every sentence.",
         "examples"_a = kAmounts[kPlaced].examples));
  page.word_table({tr("model"), tr("layer on the state of"), tr("trained"), tr("judged correctly")},
                  {{tr("causal"), tr("the last word"), tr("everything"), percent(all.tuned[kPlaced])},
                   {tr("causal"), tr("the last word"), tr("the layer alone"), percent(all.frozen)},
                   {tr("causal"), tr("the line end before"), tr("everything"), percent(all.first)},
                   {tr("masked model"), tr("the line end before"), tr("everything"), percent(all.masked_first)}});
  page.claim(
      all.first > 0.4 && all.first < 0.6 && all.tuned[kPlaced] > 0.75 && all.masked_first > 0.75,
      tr("The layer must read a state that has seen the sentence. At the line end before it a causal model knows "
         "nothing of it and can only guess; an encoder knows."),
      tr("causal: last word {last}, line end {first}; masked, line end {masked}",
         "last"_a = percent(all.tuned[kPlaced]), "first"_a = percent(all.first),
         "masked"_a = percent(all.masked_first)));
}

}  // namespace qkv::labs::language
