// Lab 10.4: encoders of another kind than the decoder, other tasks for both, and other output layers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/bahdanau_designs.h"
#include "qkv/labs/work.h"

namespace qkv::labs::bahdanau {
namespace {

constexpr int64_t kTaskEpochs = 12, kTaskPairs = 2500, kFresh = 400;

// What two exercises share.
struct Designs {
  std::optional<Outcome> usual;  // a GRU that reads, and one matrix at the end
};

int64_t design_epochs(const Page& page) { return page.data().empty() ? 8 : 100; }

// The pairs that the models of this lab are trained on, and those of its validation, or the former if there are none.
IdText text_of_lab(Page& page) {
  const TranslationRun& run = trained(page, Kind::attention).run;
  const Tokenizers& words = run.tokenizers();
  const TranslationText& text = run.text();
  return {.train = encode_pairs(text.train, words.source, words.target),
          .fresh = encode_pairs(text.valid.size() > 0 ? text.valid : text.train, words.source, words.target),
          .words = words.sizes(),
          .pad_source = words.source.pad(),
          .pad_target = words.target.pad(),
          .bos = words.target.bos()};
}

struct Plan {
  Text name;
  Reading reading;
  Writing writing;
  const IdText* text;
};

std::vector<Outcome> train_plans(const Page& page, const std::vector<Plan>& plans, int64_t epochs) {
  std::vector<Outcome> out(plans.size());
  std::vector<Text> names;
  for (const Plan& plan : plans) names.push_back(plan.name);
  Work work(page, training_of(names), plans.size());
  parallel_for(std::ssize(plans), 1e12, [&](int64_t i) {
    const SerialScope serial;
    const auto at = static_cast<size_t>(i);
    WorkObserver follower(work, at);
    out[at] = trained_design(plans[at].reading, plans[at].writing, *plans[at].text, epochs,
                             Rng(page.seed()).at("designs"), follower);
  });
  return out;
}

// The same for plans on the pairs of this lab, of which the first is the usual one.
std::vector<Outcome> train_designs(Page& page, const std::vector<Plan>& plans) {
  std::optional<Outcome>& usual = page.shared<Designs>().usual;
  std::vector<Outcome> out = train_plans(page, {plans.begin() + (usual ? 1 : 0), plans.end()}, design_epochs(page));
  if (usual)
    out.insert(out.begin(), *usual);
  else
    usual = out[0];
  return out;
}

std::vector<Text> outcome_head(const Page& page) {
  const bool built_in = page.data().empty();
  return {verbatim(""), tr("parameters"), tr("last training loss"),
          built_in ? tr("nats per token, new sentences") : tr("nats per token, training sentences"),
          built_in ? tr("new sentences exact") : tr("training sentences exact")};
}

void show_outcomes(Page& page, const std::vector<Plan>& plans, const std::vector<Outcome>& outcomes) {
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (size_t i = 0; i < plans.size(); ++i)
    rows.push_back({plans[i].name,
                    {grouped(outcomes[i].parameters), rounded(outcomes[i].last_loss, 3), rounded(outcomes[i].nats, 3),
                     percent(outcomes[i].exact)}});
  named_table(page, outcome_head(page), rows);
}

// Texts as ids of the words that occur in them.
class TaskWords {
 public:
  std::vector<int32_t> operator()(const std::string& text) {
    std::vector<int32_t> out;
    for (const auto word : split_blanks(text))
      out.push_back(ids_.emplace(word, static_cast<int32_t>(ids_.size()) + kSpecial).first->second);
    out.push_back(kEnd);
    return out;
  }
  int64_t size() const { return std::ssize(ids_) + kSpecial; }
  static constexpr int32_t kPad = 0, kBegin = 1, kEnd = 2, kSpecial = 3;

 private:
  std::map<std::string, int32_t, std::less<>> ids_;
};

struct TaskPair {
  std::string source, target;
};

// "four thousand and seven" -> "4 0 0 7", for 1 to 9,999.
TaskPair spelled(int64_t n) {
  static constexpr std::array<const char*, 20> small = {
      "",    "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
      "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr std::array<const char*, 10> tens = {"",      "",      "twenty",  "thirty", "forty",
                                                       "fifty", "sixty", "seventy", "eighty", "ninety"};
  TaskPair out;
  const auto add = [&](const std::string& word) { out.source += (out.source.empty() ? "" : " ") + word; };
  const auto at = [](const auto& list, int64_t i) { return std::string(list[static_cast<size_t>(i)]); };
  if (n >= 1000) add(at(small, n / 1000) + " thousand");
  if (n % 1000 >= 100) add(at(small, n % 1000 / 100) + " hundred");
  const int64_t rest = n % 100;
  if (rest > 0 && n > 100) add("and");
  if (rest >= 20) add(at(tens, rest / 10));
  if (rest > 0 && (rest < 20 || rest % 10 > 0)) add(at(small, rest < 20 ? rest : rest % 10));
  for (const char digit : std::to_string(n)) out.target += (out.target.empty() ? "" : " ") + std::string(1, digit);
  return out;
}

// "march 3 , 1987" or one of two other ways to write it -> "1 9 8 7 - 0 3 - 0 3".
TaskPair date(const Rng& rng) {
  static constexpr std::array<const char*, 12> months = {"january",   "february", "march",    "april",
                                                         "may",       "june",     "july",     "august",
                                                         "september", "october",  "november", "december"};
  const auto month = static_cast<size_t>(rng.below(months.size(), 0));
  const std::string name = months[month], day = std::to_string(rng.below(28, 1) + 1),
                    year = std::to_string(rng.below(100, 2) + 1950);
  const std::array<std::string, 3> ways = {day + " " + name + " " + year, name + " " + day + " , " + year,
                                           "the " + day + " of " + name + " in " + year};
  TaskPair out{.source = ways[rng.below(ways.size(), 3)], .target = {}};
  for (const char c : fmt::format("{}-{:02}-{:0>2}", year, month + 1, day))
    out.target += (out.target.empty() ? "" : " ") + std::string(1, c);
  return out;
}

// Different examples, the last ones fresh; `make` gives one for a number.
template <class Make>
IdText task_text(const Make& make, TaskPair& sample) {
  IdText out{.train = {},
             .fresh = {},
             .words = {},
             .pad_source = TaskWords::kPad,
             .pad_target = TaskWords::kPad,
             .bos = TaskWords::kBegin};
  TaskWords source, target;
  std::set<std::string> seen;
  for (uint64_t i = 0; std::ssize(seen) < kTaskPairs + kFresh; ++i) {
    const TaskPair example = make(i);
    if (!seen.insert(example.source).second) continue;
    const bool fresh = std::ssize(seen) > kTaskPairs;
    if (std::ssize(seen) == kTaskPairs + 1) sample = example;
    (fresh ? out.fresh : out.train).push_back({source(example.source), target(example.target)});
  }
  out.words = {source.size(), target.size()};
  return out;
}

}  // namespace

void kinds_question_step(Page& page) {
  page.exercise("9.6.1");
  page.say(
      tr("One decoder, a GRU that attends with an additive score, and three encoders. What the decoder gets is always "
         "the same: one state per source word, and the mean of them as its first state. All are trained in the same "
         "way, on the pairs of the models above, for {epochs} epochs.",
         "epochs"_a = design_epochs(page)));
  const IdText text = text_of_lab(page);
  const std::vector<Plan> plans = {
      {tr("encoder: GRU"), Reading::recurrent, Writing::matrix, &text},
      {tr("encoder: convolution over three words"), Reading::convolution, Writing::matrix, &text},
      {tr("encoder: two Transformer layers"), Reading::self_attention, Writing::matrix, &text}};
  const auto outcomes = train_designs(page, plans);
  show_outcomes(page, plans, outcomes);
  if (!page.data().empty()) return;
  const Trained& baseline = trained(page, Kind::baseline);
  const double without = forced_loss(baseline, baseline.run.text().valid),
               worst = std::max(outcomes[1].nats, outcomes[2].nats);
  page.claim(worst < without,
             tr("A recurrent decoder translates what an encoder that is not recurrent has read, and better than the "
                "baseline of this lab, which is recurrent on both sides and has no attention."),
             tr("convolution {convolution:.3f}, Transformer {transformer:.3f}, baseline {without:.3f} nats per token",
                "convolution"_a = outcomes[1].nats, "transformer"_a = outcomes[2].nats, "without"_a = without));
}

void uses_question_step(Page& page) {
  page.exercise("9.6.2");
  const Rng rng = Rng(page.seed()).at("uses");
  TaskPair number, day;
  const IdText numbers = task_text(
                   [&](uint64_t i) { return spelled(static_cast<int64_t>(rng.at("numbers").below(9999, i)) + 1); },
                   number),
               dates = task_text([&](uint64_t i) { return date(rng.at("dates").at(i)); }, day);
  page.say(
      tr("The encoder and decoder with attention of this lab, on two other tasks: a number in words into its digits, "
         "and a date into its standard form. {pairs} examples, {epochs} epochs, and {fresh} new "
         "examples to judge, such as these:",
         "pairs"_a = grouped(kTaskPairs), "epochs"_a = kTaskEpochs, "fresh"_a = kFresh));
  page.print(verbatim(number.source + " -> " + number.target + "\n" + day.source + " -> " + day.target));
  const std::vector<Plan> plans = {{tr("numbers"), Reading::recurrent, Writing::matrix, &numbers},
                                   {tr("dates"), Reading::recurrent, Writing::matrix, &dates}};
  const auto outcomes = train_plans(page, plans, kTaskEpochs);
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (size_t i = 0; i < plans.size(); ++i)
    rows.push_back({plans[i].name, {rounded(outcomes[i].nats, 3), percent(outcomes[i].exact)}});
  named_table(page, {tr("task"), tr("nats per token, new examples"), tr("new examples exact")}, rows);
  page.claim(outcomes[0].exact > 0.5 && outcomes[1].exact > 0.5,
             tr("The same network does both: more than half of the new examples come out without a mistake."),
             tr("numbers {numbers}, dates {dates}", "numbers"_a = percent(outcomes[0].exact),
                "dates"_a = percent(outcomes[1].exact)));
  page.say(
      tr("Other labs of this tour have more: copying and sorting (10.7.4), writing a missing span of text (11.9), and "
         "images, whose patches an encoder reads (11.8)."));
}

void output_question_step(Page& page) {
  page.exercise("9.7.6");
  const IdText text = text_of_lab(page);
  const std::vector<Plan> plans = {
      {tr("one matrix"), Reading::recurrent, Writing::matrix, &text},
      {tr("the matrix of the target embedding"), Reading::recurrent, Writing::shared, &text},
      {tr("state and previous word through tanh, then one matrix"), Reading::recurrent, Writing::deep, &text}};
  page.say(tr("The translator of exercise 9.6.1 with three output layers, trained in the same way:"));
  const auto outcomes = train_designs(page, plans);
  show_outcomes(page, plans, outcomes);
  page.fact(tr("Sharing the matrix with the target embedding saves one of the size of the vocabulary."),
            tr("{words} × {width} = {saved} of {all} parameters here", "words"_a = grouped(text.words.target),
               "width"_a = 64, "saved"_a = grouped(outcomes[0].parameters - outcomes[1].parameters),
               "all"_a = grouped(outcomes[0].parameters)));
  const bool learn =
      std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.last_loss < 0.5 * o.first_loss; });
  page.claim(learn, tr("All three learn: the training loss falls to less than half of that of the first epoch."),
             tr("last over first: {one:.2f}, {shared:.2f}, {deep:.2f}",
                "one"_a = outcomes[0].last_loss / outcomes[0].first_loss,
                "shared"_a = outcomes[1].last_loss / outcomes[1].first_loss,
                "deep"_a = outcomes[2].last_loss / outcomes[2].first_loss));
  page.say(tr(
      "For very large vocabularies a softmax over a tree, or over a sample of the words, costs less than one over all "
      "of them."));
}

}  // namespace qkv::labs::bahdanau
