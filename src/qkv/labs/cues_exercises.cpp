// Lab 10.1: translation, the covariance identity, a search engine that learns, and squeeze-and-excitation as attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/cues.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/softmax.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::cues {

void translation(Page& page) {
  page.exercise("10.1.1");
  page.say(tr(
      "A decoder that writes a translation word by word has a task at every step: the next word. Its state is the "
      "**query**, the volitional cue. Each source word shows what it has to offer; that is its **key**, the "
      "nonvolitional cue. What the decoder takes in is the word's meaning, the encoder's state: the **value**, the "
      "sensory input. In section 10.4 keys and values are the same states. Here is the idea with hand-made features "
      "(who, action, article, thing, property). The French noun comes before its adjective, so the weights cross, and "
      "\"j'ai\" needs two words at once."));
  const std::vector<std::string> source = {"i", "have", "a", "red", "car"},
                                 target = {"j'ai", "une", "voiture", "rouge"};
  // who, action, article, thing, property
  const Tensor k({5, 5}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0});
  const Tensor q({4, 5}, {5, 5, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 5});
  const Attended a = attend(Dot{}, q, k, k);
  Figure figure =
      heatmaps(a.weights.matrix(), tr("source (keys)"), tr("target (queries)"), {},
               {.colours = {.low = 0, .high = 1}, .x_tokens = source, .y_tokens = target, .cell_values = true});
  std::get<HeatMap>(figure.panels[0].content).boxes = {{0, 0}, {0, 1}, {1, 2}, {2, 4}, {3, 3}};
  page.draw("translation-cues", figure,
            tr("Each French word asks, the English words answer. Frames mark the words that really correspond."));
  const Tensor w = a.weights.matrix();
  const double two = w.ptr()[0] + w.ptr()[1], cross = std::min(w.ptr()[2 * 5 + 4], w.ptr()[3 * 5 + 3]);
  page.claim(two > 0.95 && std::abs(w.ptr()[0] - w.ptr()[1]) < 1e-6 && cross > 0.95,
             tr("One query may split its weight between two keys, and the order of the words does not matter."),
             tr("α(j'ai, i) + α(j'ai, have) = {sum:.3f}; α(voiture, car) and α(rouge, red) at least {least:.3f}",
                "sum"_a = two, "least"_a = cross));
}

void covariance(Page& page) {
  page.exercise("11.1.2");
  page.say(
      tr("Let the score be $q^\\top k_i$, and let the values be the keys themselves. With weights $p_i$ and output "
         "$\\bar{k} = \\sum_i p_i k_i$, the derivative of a softmax weight is $p_i (k_i - \\bar{k})$, and so"));
  page.formula(
      "\\nabla_q \\sum_i p_i k_i = \\sum_i p_i k_i (k_i - \\bar{k})^\\top = \\sum_i p_i k_i k_i^\\top - \\bar{k} "
      "\\bar{k}^\\top = \\mathrm{Cov}_p[k]");
  page.say(tr(
      "The tape gives the left side one row at a time, by running backward from each element of the output; the right "
      "side is computed from the weights in double precision."));
  constexpr int64_t d = 5, m = 8;
  const Rng rng = Rng(page.seed()).at("covariance");
  const Tensor q = parameter(normal({1, d}, rng.at("q"))), k = normal({m, d}, rng.at("k"));
  Tensor both = Tensor::empty({2, d, d});
  for (int64_t i = 0; i < d; ++i) {
    Tape tape;
    Tensor pick = zeros({1, d});
    pick.mutable_ptr()[i] = 1;
    tape.backward(attend(Dot{}, q, k, k).output, pick);
    const Tensor row = tape.grad(q);
    std::copy_n(row.ptr(), d, both.mutable_ptr() + i * d);
  }
  const Tensor p = attend(Dot{}, q.detached(), k, k).weights.row(0, 0, 0);
  for (int64_t i = 0; i < d; ++i)
    for (int64_t j = 0; j < d; ++j) {
      double product = 0, mean_i = 0, mean_j = 0;
      for (int64_t n = 0; n < m; ++n) {
        product += static_cast<double>(p.ptr()[n]) * k.at({n, i}) * k.at({n, j});
        mean_i += static_cast<double>(p.ptr()[n]) * k.at({n, i});
        mean_j += static_cast<double>(p.ptr()[n]) * k.at({n, j});
      }
      both.mutable_ptr()[(d + i) * d + j] = static_cast<float>(product - mean_i * mean_j);
    }
  const double off = largest_difference(both.part(0, {d, d}), both.part(d * d, {d, d}));
  page.draw(
      "covariance", heatmaps(both, "j", "i", {tr("gradient from the tape"), tr("covariance of the keys")}),
      tr("The Jacobian of the output with respect to the query, and the covariance of the keys under the weights: one "
         "matrix."));
  page.claim(off < 1e-5, tr("The tape's gradient is the covariance."),
             tr("largest difference {difference}", "difference"_a = tiny(off)));

  page.say(tr(
      "So a query learns only while it hesitates: with all the weight on one key the covariance is 0. Make a hundred "
      "random queries a thousand times as long, and for nearly all of them the gradient vanishes (except where two "
      "keys happen to be tied); that is why section 10.3 scales the scores down."));
  constexpr int64_t queries = 100;
  const auto gradients = [&](float size) {
    const Tensor many = parameter(normal({queries, d}, rng.at("many"), 0, size));
    Tape tape;
    tape.backward(attend(Dot{}, many, k, k).output, ones({queries, d}));
    std::vector<double> lengths;
    for (int64_t i = 0; i < queries; ++i) lengths.push_back(length_of(tape.grad(many).part(i * d, {d})));
    return lengths;
  };
  std::vector<double> usual = gradients(1), far = gradients(1000);
  std::nth_element(usual.begin(), usual.begin() + queries / 2, usual.end());
  const double median = usual[queries / 2];
  // Less than a thousandth, not 0: rounding errors of sums that cancel remain.
  const auto gone = std::count_if(far.begin(), far.end(), [&](double g) { return g < 1e-3 * median; });
  page.claim(gone >= 90, tr("A saturated softmax passes no gradient to its query."),
             tr("median gradient {median:.2f}; {gone} of {queries} queries a thousand times as long have less than a "
                "thousandth of it",
                "median"_a = median, "gone"_a = gone, "queries"_a = queries));
}

namespace {

struct Engine {
  Tensor documents;         // (60, 8), all of the same length
  std::vector<int> column;  // the searcher's word j means feature column[j] ...
  std::vector<float> sign;  // ... with this sign

  explicit Engine(const Rng& rng) : documents(normal({60, 8}, rng.at("documents"))), column(8), sign(8) {
    for (int64_t i = 0; i < 60; ++i) {
      const double length = length_of(documents.part(i * 8, {8}));
      for (int64_t f = 0; f < 8; ++f) documents.mutable_ptr()[i * 8 + f] *= static_cast<float>(std::sqrt(8.0) / length);
    }
    for (int j = 0; j < 8; ++j) {
      column[static_cast<size_t>(j)] = j;
      sign[static_cast<size_t>(j)] = rng.at("sign").uniform(static_cast<uint64_t>(j)) < 0.5f ? -1.0f : 1.0f;
    }
    for (uint64_t j = 7; j > 0; --j) std::swap(column[j], column[rng.at("column").below(j + 1, j)]);
  }

  // A noisy query for each document: (count, 8).
  Tensor ask(const std::vector<int32_t>& wanted, const Rng& rng) const {
    Tensor q = Tensor::empty({static_cast<int64_t>(wanted.size()), 8});
    for (size_t i = 0; i < wanted.size(); ++i)
      for (size_t f = 0; f < 8; ++f)
        q.mutable_ptr()[i * 8 + f] = sign[f] * documents.at({wanted[i], column[f]}) + 0.3f * rng.normal(i * 8 + f);
    return q;
  }
};

double found_first(const Tensor& scores, const std::vector<int32_t>& wanted) {
  int64_t hits = 0;
  const int64_t m = scores.size(-1);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const float* row = scores.ptr() + static_cast<int64_t>(i) * m;
    int64_t better = 0;
    for (int64_t j = 0; j < m; ++j) better += j != wanted[i] && row[j] >= row[wanted[i]];
    hits += better == 0;
  }
  return static_cast<double>(hits) / static_cast<double>(wanted.size());
}

}  // namespace

void search_engine(Page& page) {
  page.exercise("11.1.3");
  page.say(tr(
      "Documents are key-value pairs, a search is a query, and the ranking is the order of the attention weights. A "
      "hard ranking has no gradient, but a softmax over the scores has one, so every click teaches: minimise $-\\log "
      "\\alpha(q, k_{\\mathrm{clicked}})$ over the parameters of the score. For a large library, only the best "
      "candidates from an index would be scored and the top few shown. In the toy example below, 60 documents have 8 "
      "features each, searchers use other words (the features permuted, some negated, plus noise), and $W$ in $q^\\top "
      "W k$ learns the dictionary from clicks on 45 documents. It is then tested on the 15 that were never clicked."));
  const Rng rng = Rng(page.seed()).at("search");
  const Engine engine(rng);
  std::vector<int32_t> clicked, fresh;
  for (int32_t i = 0; i < 180; ++i) clicked.push_back(i % 45);
  for (int32_t i = 0; i < 150; ++i) fresh.push_back(45 + i % 15);
  const Tensor train_q = engine.ask(clicked, rng.at("train")), test_q = engine.ask(fresh, rng.at("test"));
  const Ids targets({180}, clicked);
  Tensor w = parameter(zeros({8, 8}));
  std::vector<double> steps, loss, recall;
  const auto scores = [&](const Tensor& q) {
    return matmul(matmul(q, w), engine.documents, Transpose::no, Transpose::yes);
  };
  for (int step = 0; step <= 60; ++step) {
    recall.push_back(found_first(scores(test_q).detached(), fresh));
    Tape tape;
    const Tensor l = cross_entropy(scores(train_q), targets);
    tape.backward(l);
    const Tensor gradient = tape.grad(w);
    for (int64_t i = 0; i < 64; ++i) w.mutable_ptr()[i] -= 0.1f * gradient.ptr()[i];
    steps.push_back(step);
    loss.push_back(l.item());
  }
  Figure figure;
  figure.cols = 2;
  figure.panels = {
      {Curves{{{"", steps, loss}}}, tr("clicks seen"), {.label = tr("step")}, {.label = tr("−log weight"), .low = 0}},
      {Curves{{{"", steps, recall}}},
       tr("documents never clicked"),
       {.label = tr("step")},
       {.label = tr("found first"), .low = 0, .high = 1.02}}};
  page.draw(
      "search-engine", figure,
      tr("Left: the loss on the clicks. Right: the share of new searches whose document, never clicked in training, "
         "ranks first."));
  const Attended top = attend(Bilinear{w.detached()}, test_q, engine.documents, engine.documents);
  const auto best = top.weights.top_k(0, 0, 0, 3);
  std::vector<std::string> shelf = {std::to_string(fresh[0])};
  for (const KeyWeight& b : best) shelf.push_back(fmt::format("{} ({:.3f})", b.key, b.weight));
  page.table({tr("document wanted"), tr("first (weight)"), tr("second"), tr("third")}, {shelf});
  page.claim(recall.front() == 0 && recall.back() > 0.7,
             tr("What was learned from clicks carries over to documents without any."),
             tr("found first: {before:.0f} % before training, {after:.0f} % after; by chance 1.7 %",
                "before"_a = 100 * recall.front(), "after"_a = 100 * recall.back()));
}

void squeeze_and_excitation(Page& page) {
  page.exercise("11.1.4");
  page.say(tr(
      "A squeeze-and-excitation block averages each channel of an image, passes the averages through a small network, "
      "and multiplies each channel by a gate between 0 and 1. Both halves are attention. The squeeze is a constant "
      "score over the pixels. A gate $\\sigma(e) = \\exp(e) / (\\exp(e) + 1)$ is a softmax over two keys, \"take the "
      "channel\" and \"take nothing\", with values $x_c$ and 0; the query is the network's output for the whole image. "
      "Since channels do not compete, the gates need not sum to one: this is the cone, not the convex hull."));
  constexpr int64_t channels = 8, pixels = 16;
  const Rng rng = Rng(page.seed()).at("squeeze");
  const Tensor image = normal({channels, pixels}, rng.at("image")), offset = normal({channels, 1}, rng.at("offset"));
  const Tensor x = (image + offset).viewed({channels, pixels, 1});
  const Tensor squeezed = attend(Constant{}, zeros({channels, 1, 1}), x, x).output.viewed({1, channels});
  const Tensor down = normal({4, channels}, rng.at("down")), up = normal({channels, 4}, rng.at("up"));
  const Tensor excitation = linear(linear(squeezed, down, {}, Activation::relu), up);
  const Tensor gates = sigmoid(excitation);
  const Tensor direct = mul(x.viewed({channels, pixels}), gates.viewed({channels, 1}));

  Tensor k = Tensor::empty({channels, 2, 1}), v = zeros({channels, 2, pixels});
  for (int64_t c = 0; c < channels; ++c) {
    k.mutable_ptr()[2 * c] = 1;
    k.mutable_ptr()[2 * c + 1] = 0;
    std::copy_n(x.ptr() + c * pixels, pixels, v.mutable_ptr() + c * 2 * pixels);
  }
  const Attended gated = attend(Dot{}, excitation.viewed({channels, 1, 1}), k, v);
  const double off = largest_difference(gated.output.viewed({channels, pixels}), direct);
  std::vector<Label> names;
  for (int64_t c = 0; c < channels; ++c) names.emplace_back(std::to_string(c));
  double total = 0;
  for (float g : gates.data()) total += g;
  page.draw(
      "squeeze-excitation",
      bars(names,
           {{tr("gates (two keys each)"), numbers(gates)}, {tr("softmax over channels"), numbers(softmax(excitation))}},
           {.label = tr("channel")}, {.label = tr("weight"), .low = 0, .high = 1}),
      tr("Gates open independently; a softmax over the channels would make them share a weight of 1."));
  page.claim(off < 1e-5, tr("The block and the attention over \"take\" and \"leave\" agree."),
             tr("largest difference {difference}; the gates sum to {total:.2f}", "difference"_a = tiny(off),
                "total"_a = total));
}

}  // namespace qkv::labs::cues
