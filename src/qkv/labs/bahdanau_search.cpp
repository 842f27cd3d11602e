// Lab 10.4: greedy search and beam search (9.8), on the book's small example and on the trained model.
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "qkv/decode/search.h"
#include "qkv/labs/bahdanau.h"

namespace qkv::labs::bahdanau {
namespace {

constexpr int32_t kA = 0, kB = 1, kC = 2, kEos = 3, kBos = 4;

// P(A, B, C, <eos>) after the words written. The two paths of section 9.8 have the book's numbers; others are uniform.
std::array<double, 4> after(const std::vector<int32_t>& written) {
  if (written.empty()) return {0.5, 0.2, 0.2, 0.1};
  if (written == std::vector<int32_t>{kA}) return {0.1, 0.4, 0.3, 0.2};
  if (written == std::vector<int32_t>{kA, kB}) return {0.2, 0.2, 0.4, 0.2};
  if (written == std::vector<int32_t>{kA, kC}) return {0.1, 0.6, 0.2, 0.1};
  if (written == std::vector<int32_t>{kA, kB, kC}) return {0, 0.2, 0.2, 0.6};
  if (written == std::vector<int32_t>{kA, kC, kB}) return {0.1, 0.2, 0.1, 0.6};
  return {0.25, 0.25, 0.25, 0.25};
}

class Example : public SourceStepModel {
 public:
  void start(const Ids& source, const Ids&) override { written_.assign(static_cast<size_t>(source.size(0)), {}); }
  Tensor step(const Ids& tokens) override {
    Tensor scores = Tensor::empty({tokens.size(0), 5});
    for (int64_t r = 0; r < tokens.size(0); ++r) {
      auto& written = written_[static_cast<size_t>(r)];
      if (tokens.ptr()[r] != kBos) written.push_back(tokens.ptr()[r]);
      const auto p = after(written);
      for (size_t i = 0; i < 4; ++i)
        scores.mutable_ptr()[r * 5 + static_cast<int64_t>(i)] = static_cast<float>(std::log(std::max(p[i], 1e-30)));
      scores.mutable_ptr()[r * 5 + kBos] = -1e30f;
    }
    return scores;
  }
  void select(std::span<const int32_t> rows) override {
    std::vector<std::vector<int32_t>> next;
    for (const int32_t r : rows) next.push_back(written_[static_cast<size_t>(r)]);
    written_ = std::move(next);
  }

 private:
  std::vector<std::vector<int32_t>> written_;
};

std::string letters(const std::vector<int32_t>& tokens) {
  std::string out;
  for (const int32_t t : tokens) out += std::string(1, static_cast<char>('A' + t)) + " ";
  return out + "<eos>";
}

struct Best {
  std::vector<int32_t> tokens;
  double probability = 0, score = -1e9;
};

// Tries every sequence of at most `left` more tokens and <eos>, and keeps the best.
void enumerate(std::vector<int32_t>& written, double p, int left, double penalty, Best& best) {
  const auto next = after(written);
  const double ended = p * next[kEos];
  const double score = std::log(std::max(ended, 1e-300)) / std::pow(static_cast<double>(written.size()) + 1, penalty);
  if (score > best.score) best = {written, ended, score};
  if (left == 0) return;
  for (const int32_t t : {kA, kB, kC}) {
    written.push_back(t);
    enumerate(written, p * next[static_cast<size_t>(t)], left - 1, penalty, best);
    written.pop_back();
  }
}

}  // namespace

void beam_example_step(Page& page) {
  page.heading(tr("Greedy is not best (9.8)"));
  page.say(tr(
      "Greedy search takes the most likely word at every step. The book's example has the words A, B, C and `<eos>`: "
      "after A the most likely word is B (0.4), but C (0.3) leads to a better ending. Beam search keeps $k$ partial "
      "sentences and ranks the finished ones by"));
  page.formula(
      "\\frac{1}{L^\\alpha} \\sum_{t'=1}^{L} \\log P(y_{t'} \\mid y_1 \\ldots y_{t'-1}, c), \\quad \\alpha = 0.75");
  Example model;
  const Ids source({1, 1}, {0}), lengths({1}, {1});
  SearchOptions options{.max_length = 4, .begin = kBos, .end = kEos};
  const Hypothesis greedy = search(model, source, lengths, options)[0][0];
  options.beam = 2;
  const Hypothesis beam = search(model, source, lengths, options)[0][0];
  std::vector<int32_t> written;
  Best best, likeliest;
  enumerate(written, 1, 4, 0.75, best);
  enumerate(written, 1, 4, 0, likeliest);
  named_table(
      page, {tr("search"), tr("sequence"), tr("probability"), tr("score")},
      {{tr("greedy"), {letters(greedy.tokens), rounded(std::exp(greedy.log_probability), 3), rounded(greedy.score, 3)}},
       {tr("beam of {width}", "width"_a = 2),
        {letters(beam.tokens), rounded(std::exp(beam.log_probability), 3), rounded(beam.score, 3)}},
       {tr("all sequences, best score"), {letters(best.tokens), rounded(best.probability, 3), rounded(best.score, 3)}},
       {tr("all sequences, most likely"),
        {letters(likeliest.tokens), rounded(likeliest.probability, 3),
         rounded(std::log(likeliest.probability) / std::pow(static_cast<double>(likeliest.tokens.size() + 1), 0.75),
                 3)}}});
  const double p = std::exp(greedy.log_probability), q = std::exp(beam.log_probability);
  page.claim(
      std::abs(p - 0.048) < 1e-6 && std::abs(q - 0.054) < 1e-6 && beam.tokens == best.tokens,
      tr("$0.5 \\cdot 0.4 \\cdot 0.4 \\cdot 0.6 = 0.048$ by greedy search, $0.5 \\cdot 0.3 \\cdot 0.6 \\cdot 0.6 = "
         "0.054$ by a beam of 2, which here finds the best sequence of all."),
      tr("greedy {greedy:.3f}, beam {beam:.3f}", "greedy"_a = p, "beam"_a = q));
  page.claim(
      likeliest.tokens.size() < best.tokens.size(),
      tr("Without dividing by a power of the length, a shorter sequence would win: each extra word can only lower the "
         "probability."),
      tr("\"{sequence}\" has probability {probability:.3f}", "sequence"_a = letters(likeliest.tokens),
         "probability"_a = likeliest.probability));
}

void beam_step(Page& page) {
  page.heading(tr("Beam search on the trained model (9.8)"));
  const Translator translator = trained(page, Kind::aligned).translator();
  const SentencePairs test = sentences_of(held_out(page));
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  double greedy_score = 0, beam_score = 0, greedy_exact = 0, beam_exact = 0;
  for (const int64_t beam : {1, 2, 4}) {
    TranslateOptions options = translator.defaults();
    options.beam = beam;
    const auto start = std::chrono::steady_clock::now();
    const auto found = translator.translate(test.source, options);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double score = 0;
    std::vector<std::string> written;
    for (const Translation& t : found) {
      score += t.hypotheses[0].score / static_cast<double>(found.size());
      written.push_back(translator.text(t.hypotheses[0]));
    }
    const double exact = share_exact(written, test.target);
    if (beam == 1) {
      greedy_score = score;
      greedy_exact = exact;
    }
    beam_score = score;
    beam_exact = exact;
    rows.push_back(
        {beam == 1 ? tr("greedy") : tr("beam of {width}", "width"_a = beam),
         {rounded(score, 4), percent(exact), rounded(1e3 * seconds / static_cast<double>(found.size()), 2)}});
  }
  page.say(
      tr("These are the {sentences} held-out sentences of the built-in corpus. A beam takes time in proportion to its "
         "width and finds sentences that the model scores higher; where the model is sure of every word, greedy search "
         "finds the same.",
         "sentences"_a = test.size()));
  named_table(page, {tr("search"), tr("mean score"), tr("exact"), tr("ms per sentence")}, rows);
  page.claim(beam_score >= greedy_score && beam_exact > greedy_exact - 0.03,
             tr("A beam of 4 finds higher scores on average, and about as many exact sentences or more."),
             tr("mean score {beam_score:.4f}, greedy {greedy_score:.4f}; exact {beam_exact}, greedy {greedy_exact}",
                "beam_score"_a = beam_score, "greedy_score"_a = greedy_score, "beam_exact"_a = percent(beam_exact),
                "greedy_exact"_a = percent(greedy_exact)));
}

}  // namespace qkv::labs::bahdanau
