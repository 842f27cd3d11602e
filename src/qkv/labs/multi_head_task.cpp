// Lab 10.5: a task that needs several heads, and models trained on it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "qkv/attention/attend.h"
#include "qkv/attention/positions.h"
#include "qkv/core/parallel.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/multi_head.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/loss.h"
#include "qkv/train/fit.h"

namespace qkv::labs::multi_head {
namespace {

constexpr int64_t kBatch = 64, kSteps = 200;

struct Task {
  const Reader& model;
  Rng rng;

  int64_t batches() const { return kSteps; }
  Lines batch(int64_t, int64_t index) const { return draw_lines(kBatch, rng.at(static_cast<uint64_t>(index))); }
  int64_t rows(const Lines& lines) const { return lines.rows(); }
  int64_t count(const Lines& lines) const { return lines.answers.numel(); }
  Loss loss(const Lines& lines, int64_t begin, int64_t end, const Run&) const {
    const int64_t n = end - begin, tokens = n * kLength;
    const Lines part{lines.letters.part(begin * kLength, {n, kLength}),
                     lines.digits.part(begin * kLength, {n, kLength}),
                     lines.answers.part(begin * kLength * kQuestions, {n, kLength, kQuestions})};
    const Tensor sum = cross_entropy(model.logits(part), part.answers, {.reduction = Reduction::sum});
    return {sum, static_cast<double>(tokens * kQuestions)};
  }
};

struct LossCurve : Observer {
  std::vector<double> losses;
  void step(const Progress& p) override { losses.push_back(p.batch_loss); }
};

TrainedReader trained(const Reader& start, const Rng& rng, WorkObserver follower) {
  TrainedReader t{start, clone(start)};
  LossCurve curve;
  Parameters all = flatten(t.after);
  Adam adam;
  Observer* observers[] = {&curve, &follower};
  fit(all, adam, {.epochs = 1, .rate = cosine_rate(0.01f, kSteps, 20)}, Task{t.after, rng}, observers);
  t.losses = std::move(curve.losses);
  return t;
}

void best_first(std::vector<TrainedReader>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const TrainedReader& a, const TrainedReader& b) { return a.end() < b.end(); });
}

// "0.0001, 0.0093, 0.1630": the final losses of all starts.
std::string ends(const std::vector<TrainedReader>& all) {
  std::string list;
  for (const TrainedReader& t : all) list += fmt::format("{}{:.4f}", list.empty() ? "" : ", ", t.end());
  return list;
}

// The first line and its answers, one question per row.
Text first_line(const Lines& lines) {
  const auto tokens = tokens_of(lines, 0);
  const int32_t* answers = lines.answers.ptr();
  std::string line, asked[kQuestions];
  for (int64_t i = 0; i < kLength; ++i) {
    line += " " + tokens[static_cast<size_t>(i)];
    for (int64_t q = 0; q < kQuestions; ++q) asked[q] += fmt::format("  {}", answers[i * kQuestions + q]);
  }
  return tr(
      "line   {line}\n"
      "before {before}\n"
      "first  {first}\n"
      "partner{partner}",
      "line"_a = line, "before"_a = asked[0], "first"_a = asked[1], "partner"_a = asked[2]);
}

}  // namespace

Lines draw_lines(int64_t rows, const Rng& rng) {
  Lines lines{Ids::empty({rows, kLength}), Ids::empty({rows, kLength}), Ids::empty({rows, kLength, kQuestions})};
  for (int64_t r = 0; r < rows; ++r) {
    const Rng own = rng.at(static_cast<uint64_t>(r));
    const std::vector<int64_t> order = shuffled(kLength, own.at("letters"));
    int32_t* digits = lines.digits.mutable_ptr() + r * kLength;
    std::vector<int64_t> place(kLength);
    for (int64_t i = 0; i < kLength; ++i) {
      lines.letters.mutable_ptr()[r * kLength + i] = static_cast<int32_t>(order[static_cast<size_t>(i)]);
      digits[i] = static_cast<int32_t>(own.at("digits").below(kDigits, static_cast<uint64_t>(i)));
      place[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
    }
    for (int64_t i = 0; i < kLength; ++i) {
      int32_t* answer = lines.answers.mutable_ptr() + (r * kLength + i) * kQuestions;
      answer[0] = digits[std::max<int64_t>(i - 1, 0)];
      answer[1] = digits[0];
      answer[2] = digits[place[static_cast<size_t>(order[static_cast<size_t>(i)] ^ 1)]];
    }
  }
  return lines;
}

std::vector<std::string> tokens_of(const Lines& lines, int64_t row) {
  std::vector<std::string> out;
  for (int64_t i = row * kLength; i < (row + 1) * kLength; ++i)
    out.push_back(fmt::format("{}{}", static_cast<char>('a' + lines.letters.ptr()[i]), lines.digits.ptr()[i]));
  return out;
}

Reader::Reader(int64_t width, int64_t heads, const Rng& rng)
    : letters(parameter(normal({kLength, width}, rng.at("letters")))),
      digits(parameter(normal({kDigits, width}, rng.at("digits")))),
      self({.width = width, .heads = heads}, rng.at("self")),
      answer(width, kQuestions * kDigits, rng.at("answer")) {}

Attended Reader::attended(const Lines& lines) const {
  const int64_t width = letters.size(1), rows = lines.rows();
  const Tensor x =
      embedding(letters, lines.letters) + embedding(digits, lines.digits) + sinusoidal_positions(kLength, width);
  const auto apart = [&](const Tensor& y) { return reshape(y, {rows, kLength, self.heads, width / self.heads}); };
  return attend(self.scorer, apart(self.to_q(x)), apart(self.to_k(x)), apart(self.to_v(x)), Mask::none(), {},
                {.axis = HeadAxis::inner});
}

Tensor Reader::logits(const Tensor& found, const Tensor& gates) const {
  const Tensor open = gates.defined() ? mul(found, gates) : found;
  const int64_t rows = found.size(0);
  return reshape(answer(self.to_out(reshape(open, {rows, kLength, letters.size(1)}))),
                 {rows, kLength, kQuestions, kDigits});
}

Score score(const Reader& reader, const Tensor& found, const Lines& lines, const Tensor& gates) {
  const Tensor logits = reader.logits(found, gates);
  Score result{.loss = cross_entropy(logits, lines.answers).item()};
  for (int64_t i = 0; i < lines.answers.numel(); ++i) {
    const float* row = logits.ptr() + i * kDigits;
    const bool right = std::max_element(row, row + kDigits) - row == lines.answers.ptr()[i];
    if (right) result.right[static_cast<size_t>(i % kQuestions)] += 1;
  }
  for (double& share : result.right) share /= static_cast<double>(lines.letters.numel());
  return result;
}

double TrainedReader::end() const { return std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20; }

Lines test_lines(const Page& page) { return draw_lines(250, Rng(page.seed()).at("multi-head").at("test")); }

const Readers& readers(Page& page) {
  Readers& r = page.shared<Readers>();
  if (!r.several.empty()) return r;
  const Rng rng = Rng(page.seed()).at("multi-head");
  Work work(page, tr("training models with several heads and with one"), kStarts + kOneHeadStarts);
  r.several.resize(kStarts);
  r.one.resize(kOneHeadStarts);
  parallel_for(kStarts + kOneHeadStarts, 1e9, [&](int64_t task) {
    const SerialScope serial;
    const bool wide = task >= kStarts;
    const auto start = static_cast<uint64_t>(wide ? task - kStarts : task);
    (wide ? r.one : r.several)[start] =
        trained(Reader(kHeads * kHeadWidth, wide ? 1 : kHeads, rng.at(wide ? "one" : "several").at(start)),
                rng.at("lines").at(start), WorkObserver(work, static_cast<size_t>(task)));
  });
  best_first(r.several);
  best_first(r.one);
  return r;
}

void one_against_several(Page& page) {
  page.heading(tr("Why one head is not enough"));
  page.say(tr(
      "The task asks three questions of every token. A line is the letters a to h in random order, each with a random "
      "digit from 0 to 3. Every token must give three digits: that of the token before it (the first token: its own), "
      "that of the first token of the line, and that of its partner: a with b, c with d, e with f, g with h."));
  const Lines test = test_lines(page);
  page.print(first_line(test));
  page.say(tr(
      "The first two questions are about position, the third is about content. The model adds embeddings of letter and "
      "digit and a positional encoding (lab 10.6), runs one layer of multi-head self-attention of width {width} and "
      "reads the three answers from its output with a linear layer. There is no residual connection: an answer knows "
      "only what the heads bring. Compare {heads} heads of width {head_width} with one head of width {width}: the same "
      "number of parameters, the same {steps} steps of Adam. Now and then training gets stuck with a question "
      "unanswered, so the model with six heads is trained from {starts} starts and the other from {one_head_starts}, "
      "and for each model the start with the lowest training loss is kept.",
      "width"_a = kHeads * kHeadWidth, "heads"_a = kHeads, "head_width"_a = kHeadWidth, "steps"_a = kSteps,
      "starts"_a = kStarts, "one_head_starts"_a = kOneHeadStarts));
  const Readers& r = readers(page);
  const TrainedReader &wide = r.one[0], &six = r.several[0];
  const Score one = score(wide.after, test), several = score(six.after, test), none = score(six.before, test);
  std::vector<double> steps(kSteps);
  std::iota(steps.begin(), steps.end(), 1.0);
  page.draw("one-against-several",
            curves({{tr("{heads} heads", "heads"_a = kHeads), steps, six.losses, line_style("b-")},
                    {tr("one head"), steps, wide.losses, line_style("r--")}},
                   {.label = tr("step")}, {.label = tr("loss, nats per answer"), .low = 0}),
            tr("Training loss. One wide head cannot look at three tokens at once."));
  page.fact(tr("The final training losses of all starts."),
            tr("{heads} heads {several}; one head {one}", "heads"_a = kHeads, "several"_a = ends(r.several),
               "one"_a = ends(r.one)));
  const auto row = [](const Reader& reader, const Score& s) -> std::vector<std::string> {
    return {grouped(count_parameters(reader)), rounded(s.loss, 4), percent(s.right[0]), percent(s.right[1]),
            percent(s.right[2])};
  };
  named_table(page, {verbatim(""), tr("parameters"), tr("loss"), tr("before"), tr("first"), tr("partner")},
              {{tr("untrained"), row(six.before, none)},
               {tr("one head"), row(wide.after, one)},
               {tr("six heads"), row(six.after, several)}});
  page.claim(
      several.all() > 0.97 && one.all() < 0.9 && count_parameters(wide.after) == count_parameters(six.after),
      tr("With the same number of parameters, several heads answer all three questions on new lines; one head does "
         "not."),
      tr("{heads} heads {several} right, one head {one}", "heads"_a = kHeads, "several"_a = percent(several.all()),
         "one"_a = percent(one.all())));
  page.say(tr(
      "One head has one weight per token. Putting weight on three tokens at once mixes their digits, and the mixture "
      "does not show which digit came from where. So the head learns to answer one question and guesses the rest (a "
      "blind guess is right one time in four)."));
}

}  // namespace qkv::labs::multi_head
