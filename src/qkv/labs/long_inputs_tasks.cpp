// Lab of long inputs: what each kind learns on tasks that need far tokens, and what it does to a trained model.
#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/core/parallel.h"
#include "qkv/labs/language.h"
#include "qkv/labs/long_inputs.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/train/fit.h"

namespace qkv::labs::long_inputs {
namespace {

constexpr int64_t kSteps = 400, kBatch = 32, kTests = 100, kModelWidth = 32, kModelHeads = 2;
constexpr int64_t kTextLength = 96, kTextSteps = 600, kTextBatch = 16, kTextWidth = 64, kTextTests = 24;
constexpr int32_t kNothing = -1;

// A random sequence of properly nested brackets of two kinds; closing ones do not show theirs, which is the answer.
void draw_brackets(int32_t* ids, int32_t* answers, const Rng& rng) {
  std::vector<int32_t> open;
  for (int64_t i = 0; i < kTaskLength; ++i) {
    const int64_t left = kTaskLength - i;
    const auto u = rng.below(100, static_cast<uint64_t>(i));
    const bool closes = !open.empty() && (std::ssize(open) >= left || u < 45);
    if (closes) {
      ids[i] = 2;
      answers[i] = open.back();
      open.pop_back();
    } else {
      ids[i] = static_cast<int32_t>(rng.at("kind").below(2, static_cast<uint64_t>(i)));
      answers[i] = kNothing;
      open.push_back(ids[i]);
    }
  }
}

TransformerConfig model_of(const AttentionKindOptions& kind, int64_t width, int64_t length) {
  return {.hidden = width,
          .ffn = 2 * width,
          .heads = kModelHeads,
          .layers = 2,
          .dropout = 0,
          .norm = NormPlace::pre,
          .activation = Activation::gelu,
          .positions = PositionKind::rotary,
          .max_positions = length,
          .kind = kind};
}

// Words of the built-in corpus, some of them hidden: a hidden word is the answer.
struct Hidden {
  Ids ids, answers;  // (rows, kTextLength)
};
Hidden hidden_words(const std::vector<int32_t>& text, int64_t rows, int32_t mask, const Rng& rng) {
  Hidden out{Ids::empty({rows, kTextLength}), Ids::empty({rows, kTextLength})};
  const auto last = static_cast<uint64_t>(std::ssize(text) - kTextLength);
  for (int64_t r = 0; r < rows; ++r) {
    const auto begin = static_cast<int64_t>(rng.at("begin").below(last, static_cast<uint64_t>(r)));
    for (int64_t i = 0; i < kTextLength; ++i) {
      const int64_t at = r * kTextLength + i;
      const int32_t word = text[static_cast<size_t>(begin + i)];
      const bool hide = rng.at("hidden").below(100, static_cast<uint64_t>(at)) < 20;
      out.ids.mutable_ptr()[at] = hide ? mask : word;
      out.answers.mutable_ptr()[at] = hide ? word : kNothing;
    }
  }
  return out;
}

double loss_on(const TransformerDecoder& model, const Hidden& rows) {
  return cross_entropy(model.logits(rows.ids, {}, {}, Mask::none()), rows.answers, {.ignore_id = kNothing}).item();
}

// The same weights with another kind of attention.
TransformerDecoder with_kind(const TransformerDecoder& model, AttentionKindOptions options) {
  TransformerDecoder out = model;
  options.positions = kTextLength;
  for (TransformerBlock& block : out.stack.blocks)
    block.self.kind = LongAttention(options, kTextWidth / kModelHeads, Rng(1));
  return out;
}

}  // namespace

Text name_of(Task task) {
  switch (task) {
    case Task::copy:
      return tr("copy");
    case Task::brackets:
      return tr("brackets");
    case Task::sorting:
      return tr("sorting");
    case Task::haystack:
      return tr("haystack");
  }
  return {};
}

TaskRows draw_rows(Task task, int64_t rows, const Rng& rng) {
  TaskRows out{Ids::empty({rows, kTaskLength}), Ids::empty({rows, kTaskLength})};
  for (int64_t r = 0; r < rows; ++r) {
    const Rng own = rng.at(static_cast<uint64_t>(r));
    int32_t *ids = out.ids.mutable_ptr() + r * kTaskLength, *answers = out.answers.mutable_ptr() + r * kTaskLength;
    for (int64_t i = 0; i < kTaskLength; ++i) {
      ids[i] = static_cast<int32_t>(own.below(kSymbols, static_cast<uint64_t>(i)));
      answers[i] = kNothing;
    }
    if (task == Task::copy)
      for (int64_t i = kTaskLength / 2; i < kTaskLength; ++i) {
        answers[i] = ids[i - kTaskLength / 2];
        ids[i] = 2 * kSymbols;
      }
    if (task == Task::brackets) draw_brackets(ids, answers, own.at("brackets"));
    if (task == Task::sorting) {
      std::copy_n(ids, kTaskLength, answers);
      std::sort(answers, answers + kTaskLength);
    }
    if (task == Task::haystack) {
      const auto place = own.at("place").below(kTaskLength, 0);
      std::fill_n(answers, kTaskLength, ids[place]);
      ids[place] += kSymbols;
    }
  }
  return out;
}

TransformerDecoder trained_on(Task task, const AttentionKindOptions& kind, const Rng& rng, Observer& observer) {
  TransformerDecoder model(model_of(kind, kModelWidth, kTaskLength), kVocabulary, Cross::no, rng.at("init"));
  Adam adam;
  Observer* observers[] = {&observer};
  fit(
      model, adam, {.steps = kSteps, .rate = cosine_rate(6e-3f, kSteps, 20), .clip = 1},
      [&](int64_t step, const Run& run) {
        const TaskRows rows = draw_rows(task, kBatch, rng.at("rows").at(static_cast<uint64_t>(step)));
        return cross_entropy(model.logits(rows.ids, {}, run, Mask::none()), rows.answers, {.ignore_id = kNothing});
      },
      observers);
  return model;
}

double share_right(const TransformerDecoder& model, const TaskRows& rows) {
  const Ids best = argmax(model.logits(rows.ids, {}, {}, Mask::none()));
  double right = 0, asked = 0;
  for (int64_t i = 0; i < best.numel(); ++i) {
    if (rows.answers.ptr()[i] == kNothing) continue;
    asked += 1;
    right += best.ptr()[i] == rows.answers.ptr()[i];
  }
  return right / asked;
}

void tasks(Page& page) {
  page.heading(tr("Four tasks that need far tokens"));
  page.say(
      tr("Every kind is trained on each task for {steps} steps: two layers of width {width} on {n} tokens, rotary "
         "positions. **Copy**: the second half repeats the first, {distance} tokens away. **Brackets**: which kind of "
         "bracket does this one close? **Sorting**: the tokens in order. **Haystack**: one token is marked, and every "
         "token must say which. A window reaches {near} tokens per layer.",
         "steps"_a = kSteps, "width"_a = kModelWidth, "n"_a = kTaskLength, "distance"_a = kTaskLength / 2,
         "near"_a = kinds(kTaskLength)[1].options.window));
  const std::vector<Kind> list = kinds(kTaskLength);
  Measured& all = page.shared<Measured>();
  all.right.assign(list.size(), {});
  const Rng rng = Rng(page.seed()).at("tasks");
  {
    Work work(page, tr("training every kind on every task"), list.size() * kTasks);
    parallel_for(std::ssize(list) * kTasks, 1e9, [&](int64_t job) {
      const SerialScope serial;
      const auto task = static_cast<Task>(job % kTasks);
      const auto kind = static_cast<size_t>(job / kTasks);
      WorkObserver observer(work, static_cast<size_t>(job));
      const Rng own = rng.at(static_cast<uint64_t>(task));
      all.right[kind][static_cast<size_t>(task)] =
          share_right(trained_on(task, list[kind].options, own, observer), draw_rows(task, kTests, own.at("test")));
    });
  }
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  std::vector<Label> names, task_names;
  std::vector<NamedValues> series;
  for (size_t k = 0; k < list.size(); ++k) {
    std::vector<std::string> cells;
    std::vector<double> values;
    for (const double right : all.right[k]) {
      cells.push_back(percent(right));
      values.push_back(100 * right);
    }
    rows.push_back({list[k].name, std::move(cells)});
    series.push_back({list[k].name, std::move(values)});
  }
  std::vector<Text> head{tr("kind")};
  for (int64_t t = 0; t < kTasks; ++t) {
    head.push_back(name_of(static_cast<Task>(t)));
    task_names.emplace_back(name_of(static_cast<Task>(t)));
  }
  named_table(page, head, rows);
  page.draw("tasks", bars(task_names, series, {}, {.label = tr("right, %"), .low = 0, .high = 100}),
            tr("Right answers on new rows. Guessing gives 12.5 % for copy and haystack, 50 % for brackets."));
  const auto& exact = all.right[0];
  const auto& window = all.right[1];
  page.claim(exact[3] > 0.95 && window[3] < 0.75,
             tr("Exact attention finds the marked token anywhere; a window finds it only where its layers reach."),
             tr("exact {exact}, window {window}", "exact"_a = percent(exact[3]), "window"_a = percent(window[3])));
  page.claim(
      exact[0] > 0.95 && window[0] < 0.25,
      tr("Exact attention copies over any distance. What is further away than two layers of a window reach cannot "
         "be copied."),
      tr("exact {exact}, window {window}, guessing gives 12.5 %", "exact"_a = percent(exact[0]),
         "window"_a = percent(window[0])));
  const double blurred = std::max(all.right[4][0], all.right[7][0]);
  page.claim(blurred < exact[0] - 0.1,
             tr("Linear attention and landmarks have only mixtures of tokens, from which a single one is hard to tell: "
                "they copy less well than exact attention."),
             tr("linear {linear}, landmarks {landmarks}, exact {exact}", "linear"_a = percent(all.right[4][0]),
                "landmarks"_a = percent(all.right[7][0]), "exact"_a = percent(exact[0])));
  page.say(tr(
      "Sorting needs to know only how often each token occurs, and mixtures tell that. Most brackets close near where "
      "they opened, so there a window does about as well as everything; two layers do not count deep nests."));
}

void swapped(Page& page) {
  page.heading(tr("In a model that was trained with exact attention"));
  page.say(tr(
      "A model that fills in hidden words of the built-in corpus is trained with exact attention on {n} words at a "
      "time. Then its attention is replaced, without further training. Low rank has matrices of its own, which would "
      "have to be learned first.",
      "n"_a = kTextLength));
  const language::WordText text = language::read_words(page.seed());
  const auto mask = static_cast<int32_t>(text.tokenizer.size());
  const Rng rng = Rng(page.seed()).at("swapped");
  TransformerDecoder model(model_of({}, kTextWidth, kTextLength), mask + 1, Cross::no, rng.at("init"));
  {
    Work work(page, tr("training a model that fills in hidden words"));
    WorkObserver observer(work);
    Observer* observers[] = {&observer};
    Adam adam;
    fit(
        model, adam, {.steps = kTextSteps, .rate = cosine_rate(6e-3f, kTextSteps, 20), .clip = 1},
        [&](int64_t step, const Run& run) {
          const Hidden rows =
              hidden_words(text.train, kTextBatch, mask, rng.at("rows").at(static_cast<uint64_t>(step)));
          return cross_entropy(model.logits(rows.ids, {}, run, Mask::none()), rows.answers, {.ignore_id = kNothing});
        },
        observers);
  }
  const Hidden test = hidden_words(text.test, kTextTests, mask, rng.at("test"));
  const double whole = loss_on(model, test);
  Measured& all = page.shared<Measured>();
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (const Kind& kind : kinds(kTextLength)) {
    const bool learned = kind.options.kind == AttentionKind::linformer;
    const double loss =
        learned ? std::numeric_limits<double>::quiet_NaN() : loss_on(with_kind(model, kind.options), test);
    all.rise.push_back(loss - whole);
    rows.push_back({kind.name, {learned ? "–" : rounded(loss, 3), learned ? "–" : rounded(loss - whole, 3)}});
  }
  named_table(page, {tr("kind"), tr("loss, nats per hidden word"), tr("rise")}, rows);
  std::vector<double> windows, losses;
  for (int64_t w = 1; w < 2 * kTextLength; w *= 2) {  // the last one holds the text
    windows.push_back(static_cast<double>(w));
    losses.push_back(loss_on(with_kind(model, {.kind = AttentionKind::window, .window = w}), test));
  }
  page.draw("windows",
            curves({{tr("window"), windows, losses, line_style("bo-")},
                    {tr("exact attention"), {1, windows.back()}, {whole, whole}, line_style("k--")}},
                   {.label = tr("words on each side"), .scale = AxisScale::log}, {.label = tr("loss, nats per word")}),
            tr("How wide a window the trained model needs: sentences are short, so a few words do."));
  page.claim(losses[0] > losses[3] && losses.back() < whole + 1e-3,
             tr("A trained model loses less the wider its window is, and nothing once the window holds the text."),
             tr("loss {one:.3f} with a window of 1, {eight:.3f} with 8, {exact:.3f} exact", "one"_a = losses[0],
                "eight"_a = losses[3], "exact"_a = whole));
  page.claim(
      all.rise[1] < 0.5 * std::min({all.rise[4], all.rise[5], all.rise[7]}),
      tr("A trained model has learned sharp weights. A window leaves near ones as they are; what replaces softmax or "
         "imitates it from few features cannot be that sharp, and disturbs the model more than twice as much."),
      tr("the loss rises by {window:.3f} with a window, by {linear:.3f} with linear attention, {random:.3f} with "
         "random features, {landmarks:.3f} with landmarks",
         "window"_a = all.rise[1], "linear"_a = all.rise[4], "random"_a = all.rise[5], "landmarks"_a = all.rise[7]));
}

void summary(Page& page) {
  page.heading(tr("All in one table"));
  const Measured& m = page.shared<Measured>();
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  const std::vector<Kind> list = kinds(kTaskLength);
  for (size_t k = 0; k < list.size(); ++k) {
    std::vector<std::string> cells = {rounded(m.milliseconds[k], 0), rounded(m.megabytes[k], 0),
                                      std::isnan(m.rise[k]) ? "–" : rounded(m.error[k], 2)};
    for (const double right : m.right[k]) cells.push_back(rounded(100 * right, 0));
    cells.push_back(std::isnan(m.rise[k]) ? "–" : rounded(m.rise[k], 2));
    rows.push_back({list[k].name, std::move(cells)});
  }
  named_table(page,
              {tr("kind"), tr("ms"), tr("MB"), tr("error"), tr("copy, %"), tr("brackets, %"), tr("sorting, %"),
               tr("haystack, %"), tr("rise of the loss")},
              rows);
  page.say(tr(
      "**Answer.** Long inputs cost the square of their length in time; memory need not. What to use instead depends "
      "on where the information is: a window where it is near, global tokens or random blocks where a few far tokens "
      "matter, sums of features where an average over everything will do, landmarks or low rank where the weights are "
      "smooth and nothing must be causal. Whatever the survey of efficient Transformers calls it, each buys speed with "
      "pairs that it no longer tells apart."));
}

}  // namespace qkv::labs::long_inputs
