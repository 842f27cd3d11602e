// Lab 11.9: the exercises of the section.
#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/data/corruption.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/language.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/nn/module.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/schedule.h"

namespace qkv::labs::language {
namespace {

constexpr size_t kQuestions = 1024, kTestQuestions = 300;
constexpr int64_t kTaskSteps = 600, kHalfRows = 8;  // rows of a task in a batch
constexpr const char *kHowMany = "what", *kFirst = "who", *kOne = "this", *kSeveral = "these";

// The beginning of a sentence, the word that names the task, and the word that is the answer.
struct Question {
  std::vector<int32_t> beginning;
  int32_t task = 0, answer = 0;
};

int32_t id_of(const WordText& text, const char* word) { return text.tokenizer.encode(word).front(); }

// Two questions about every beginning: does it name one or several, and which is its first word?
struct Questions {
  std::vector<Question> how_many, first;
};

Questions questions_of(const WordText& text, const Subjects& all) {
  Questions out;
  for (size_t i = 0; i < all.beginnings.size(); ++i) {
    const std::vector<int32_t>& words = all.beginnings[i];
    out.how_many.push_back({words, id_of(text, kHowMany), id_of(text, all.several[i] ? kSeveral : kOne)});
    out.first.push_back({words, id_of(text, kFirst), words[0]});
  }
  return out;
}

// A decoder reads beginning and task and writes the answer next; an encoder reads them, and its decoder begins with the
// answer.
Tensor answered(const LanguageModel& model, const std::vector<const Question*>& asked, int32_t line_end, Ids* wanted,
                const Run& run) {
  const bool pair = model.pair.has_value();
  size_t longest = 0;
  for (const Question* q : asked) longest = std::max(longest, q->beginning.size());
  const auto rows = std::ssize(asked), n = static_cast<int64_t>(longest) + 2;
  Ids read = Ids::empty({rows, n}), begin = Ids::empty({rows, 1});
  *wanted = Ids::empty({rows, pair ? 1 : n});
  std::fill_n(read.mutable_ptr(), rows * n, line_end);
  std::fill_n(wanted->mutable_ptr(), wanted->numel(), kNotAsked);
  for (int64_t r = 0; r < rows; ++r) {
    const Question& q = *asked[static_cast<size_t>(r)];
    int32_t* row = read.mutable_ptr() + r * n;
    // The task comes last where only what is before can be seen; in an encoder it may come first.
    std::ranges::copy(q.beginning, row + 1);
    const int64_t end = std::ssize(q.beginning) + 1;
    row[pair ? 0 : end] = q.task;
    wanted->mutable_ptr()[pair ? r : r * n + end] = q.answer;
    begin.mutable_ptr()[r] = pair ? model.begin() : 0;
  }
  return pair ? model.features(read, begin, run) : model.features(read, run);
}

double share_answered(const LanguageModel& model, const std::vector<Question>& questions, int32_t line_end) {
  const TapePause pause;
  std::vector<const Question*> all;
  for (const Question& q : questions) all.push_back(&q);
  Ids wanted;
  const Tensor x = answered(model, all, line_end, &wanted, Run{});
  double right = 0;
  for (int64_t i = 0; i < wanted.numel(); ++i)
    if (wanted.ptr()[i] != kNotAsked) right += best_word(model, x.ptr() + i * x.size(2)) == wanted.ptr()[i];
  return right / static_cast<double>(questions.size());
}

// A copy of the model after training on some rows of each set of questions in every batch.
LanguageModel tuned_on(const LanguageModel& from, const std::vector<const std::vector<Question>*>& sets,
                       int32_t line_end, const Rng& rng, Observer& observer) {
  LanguageModel model = from;
  Adam adam = adamw(0.01f);
  Observer* observers[] = {&observer};
  fit(
      model, adam, {.steps = kTaskSteps, .rate = cosine_rate(1e-3f, kTaskSteps, 30), .clip = 1},
      [&](int64_t step, const Run& run) {
        std::vector<const Question*> asked;
        for (size_t s = 0; s < sets.size(); ++s)
          for (int64_t i = 0; i < kHalfRows; ++i) {
            const auto draw = static_cast<uint64_t>(step * kHalfRows + i);
            asked.push_back(&(*sets[s])[rng.at("draw").below(sets[s]->size(), draw)]);
          }
        Ids wanted;
        const Tensor x = answered(model, asked, line_end, &wanted, run);
        return linear_cross_entropy(x, model.output().weight, model.output().bias, wanted, {.ignore_id = kNotAsked});
      },
      observers);
  return model;
}

// ln of the probability of every word of a sentence and its line end, given the ones before.
double log_probability(const LanguageModel& model, const std::vector<int32_t>& sentence, int32_t line_end) {
  std::vector<int32_t> read = {line_end}, next = sentence;
  read.insert(read.end(), sentence.begin(), sentence.end());
  next.push_back(line_end);
  const auto n = std::ssize(read);
  const Tensor x = model.features(Ids({1, n}, read), Run{});
  return -linear_cross_entropy(x, model.output().weight, model.output().bias, Ids({1, n}, next),
                               {.reduction = Reduction::sum})
              .item();
}

}  // namespace

void mixed_tasks(Page& page) {
  page.exercise("11.9.1");
  const Readers& r = readers(page);
  const int32_t line_end = r.text.tokenizer.line_end();
  const Rng rng = Rng(page.seed()).at("mixed");
  const Questions train = questions_of(r.text, subjects(r.text, r.text.labelled).part(0, kQuestions));
  const Questions test = questions_of(r.text, subjects(r.text, r.text.test).part(0, kTestQuestions));
  page.say(
      tr("Can a minibatch for fine-tuning hold examples of different tasks: with T5, with GPT-2? With both, as long as "
         "every task is written as text and the text says which task it is: then all rows have the same output layer "
         "and the same loss. With a layer of its own for each task they would not. Here two tasks are mixed: whether "
         "one or several are meant (`{how_many}`, answered by `{one}` or `{several}`), and the first word (`{first}`); "
         "words of the corpus serve as names.",
         "how_many"_a = kHowMany, "one"_a = kOne, "several"_a = kSeveral, "first"_a = kFirst));
  struct Trained {
    double how_many = 0, first = 0;
  };
  std::array<Trained, 2> mixed, alone;  // the causal model, the model of spans
  Work work(page, tr("fine-tuning on two tasks"), 6);
  parallel_for(6, 1e10, [&](int64_t i) {
    const SerialScope serial;
    const auto which = static_cast<size_t>(i % 2);
    const LanguageModel& from = which == 0 ? r.causal.model : r.spans.model;
    WorkObserver follower(work, static_cast<size_t>(i));
    std::vector<const std::vector<Question>*> sets;
    if (i / 2 != 2) sets.push_back(&train.how_many);  // 0: both, 1: the first task, 2: the second
    if (i / 2 != 1) sets.push_back(&train.first);
    const LanguageModel model = tuned_on(from, sets, line_end, rng.at("rows"), follower);
    if (i / 2 == 0)
      mixed[which] = {share_answered(model, test.how_many, line_end), share_answered(model, test.first, line_end)};
    if (i / 2 == 1) alone[which].how_many = share_answered(model, test.how_many, line_end);
    if (i / 2 == 2) alone[which].first = share_answered(model, test.first, line_end);
  });
  const auto row = [](const Trained& t) -> std::vector<std::string> { return {percent(t.how_many), percent(t.first)}; };
  named_table(page, {verbatim(""), tr("one or several?"), tr("first word")},
              {{tr("causal, one model per task"), row(alone[0])},
               {tr("causal, one for both, mixed"), row(mixed[0])},
               {tr("spans, one model per task"), row(alone[1])},
               {tr("spans, one for both, mixed"), row(mixed[1])}});
  page.claim(mixed[0].how_many > alone[0].how_many - 0.05 && mixed[0].first > alone[0].first - 0.05 &&
                 mixed[0].how_many > 0.8 && mixed[0].first > 0.8,
             tr("One causal model learns both tasks from minibatches that mix them, as well as one model for each."),
             tr("one or several {mixed} and {alone}, first word {mixed_first} and {alone_first}",
                "mixed"_a = percent(mixed[0].how_many), "alone"_a = percent(alone[0].how_many),
                "mixed_first"_a = percent(mixed[0].first), "alone_first"_a = percent(alone[0].first)));
}

void applications(Page& page) {
  page.exercise("11.9.2");
  page.say(tr(
      "What could you do with a strong language model? Continue and complete text or code (`qkv generate`); answer "
      "and summarise, if the prompt asks for it; translate; fill gaps; judge texts by their probability, to "
      "correct, rank and recognise them (`qkv score`); compress; and start from it wherever labels are few. The "
      "smallest of these with the causal model from above, which has never seen a mistake or a label: two "
      "neighbouring words of a sentence are exchanged, and the likelier of both versions is taken for the right one."));
  const TapePause pause;
  const Readers& r = readers(page);
  const int32_t line_end = r.text.tokenizer.line_end();
  const LanguageModel nothing(r.causal.model.config, r.causal.model.tokens, Rng(page.seed()).at("nothing"));
  const Rng rng = Rng(page.seed()).at("pairs");
  double right = 0, by_chance = 0, pairs = 0;
  for (const std::vector<int32_t>& sentence : r.text.sentences(r.text.test)) {
    if (pairs == 200) break;
    if (sentence.size() < 4 || std::ssize(sentence) + 2 > kContext) continue;
    std::vector<int32_t> other = sentence;
    const auto at = static_cast<int64_t>(rng.below(sentence.size() - 2, static_cast<uint64_t>(pairs)));
    std::iter_swap(other.begin() + at, other.begin() + at + 1);
    ++pairs;
    right += log_probability(r.causal.model, sentence, line_end) > log_probability(r.causal.model, other, line_end);
    by_chance += log_probability(nothing, sentence, line_end) > log_probability(nothing, other, line_end);
  }
  page.claim(right > 0.9 * pairs,
             tr("A language model finds the sentence that is in order without any training for it."),
             tr("{right} of {pairs} pairs; with random weights {chance}", "right"_a = percent(right / pairs),
                "pairs"_a = pairs, "chance"_a = percent(by_chance / pairs)));
}

void decoders_alone(Page& page) {
  page.exercise("11.9.4");
  page.say(
      tr("What limits a decoder-only model when the whole input is known, as in translation? Its mask. A word of the "
         "input is read without the words after it, although they are there: its state cannot take them into account, "
         "and what it means must be settled later, by the words that are written. An encoder reads every word with "
         "both sides; so does a decoder whose mask lets the input see all of itself (a prefix). To see it, change the "
         "last word of the input and look at the states of the words before."));
  const TapePause pause;
  const Readers& r = readers(page);
  const auto n = kContext;
  std::vector<int32_t> block(r.text.test.begin(), r.text.test.begin() + n), other = block;
  other.back() = (other.back() + 1) % static_cast<int32_t>(r.text.tokenizer.size());
  const auto change = [&](const auto& states) {  // the mean over the words before the last, of |difference| / |state|
    const Tensor a = states(Ids({1, n}, block)), b = states(Ids({1, n}, other));
    const int64_t width = a.size(2);
    double sum = 0;
    for (int64_t i = 0; i + 1 < n; ++i) {
      double difference = 0, length = 0;
      for (int64_t k = i * width; k < (i + 1) * width; ++k) {
        difference += std::pow(static_cast<double>(a.ptr()[k]) - b.ptr()[k], 2);
        length += std::pow(static_cast<double>(a.ptr()[k]), 2);
      }
      sum += std::sqrt(difference / length);
    }
    return sum / static_cast<double>(n - 1);
  };
  const double causal = change([&](const Ids& ids) { return r.causal.model.features(ids, Run{}); });
  const double masked = change([&](const Ids& ids) { return r.masked.model.features(ids, Run{}); });
  const double spans = change([&](const Ids& ids) { return r.spans.model.pair->encoder(ids, {}, Run{}); });
  page.claim(causal == 0 && masked > 0.001 && spans > 0.001,
             tr("In the causal model the last word changes nothing before it; in an encoder it changes every state."),
             tr("mean change of a state: causal {causal}, masked {masked}, encoder of spans {spans}",
                "causal"_a = percent(causal), "masked"_a = percent(masked), "spans"_a = percent(spans)));
  page.say(tr(
      "What that costs is in the table of the three objectives: the causal model, as large as the masked one, "
      "fills gaps worse. Large decoders make up for it with depth: the words that they write do see the whole input."));
}

}  // namespace qkv::labs::language
