// Lab of long inputs (exercises 10.7.4 and 10.7.5): the cheaper kinds of attention, and what each looks at.
#include "qkv/labs/long_inputs.h"

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/attention_of.h"
#include "qkv/attention/long_attention.h"
#include "qkv/attention/positions.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"

namespace qkv::labs {
namespace long_inputs {
namespace {

constexpr int64_t kMapLength = 48, kWidth = 32;

// Queries and keys of a text in which tokens look for near tokens and for earlier copies of themselves: half of the
// width is the token, half its position.
Tensor text_like(int64_t n, int64_t width, const Rng& rng) {
  const Tensor symbols = normal({12, width / 2}, rng.at("symbols"));
  Ids ids = Ids::empty({n});
  for (int64_t i = 0; i < n; ++i)
    ids.mutable_ptr()[i] = static_cast<int32_t>(rng.at("text").below(12, static_cast<uint64_t>(i)));
  return reshape(concat({scale(gather_rows(symbols, ids), 1.2f), scale(sinusoidal_positions(n, width / 2), 1.3f)}, 1),
                 {1, n, 1, width});
}

// The weights that a kind has in effect on that text: (n, n).
Tensor weights_of(const AttentionKindOptions& options, const Tensor& x) {
  const auto run = [&](const Run& r) {
    if (options.kind == AttentionKind::exact)
      attend(ScaledDot{}, x, x, x, Mask::none(), r, {.axis = HeadAxis::inner});
    else
      LongAttention(options, x.size(3), Rng(1))(x, x, x, Mask::none(), r);
  };
  return attention_of(run).begin()->second.head(0, 0);
}

}  // namespace

std::vector<Kind> kinds(int64_t n) {
  const int64_t near = std::max<int64_t>(4, n / 32), few = std::max<int64_t>(8, n / 64);
  return {{tr("exact attention"), {}},
          {tr("window"), {.kind = AttentionKind::window, .window = near}},
          {tr("dilated, global"), {.kind = AttentionKind::dilated, .window = near, .dilation = 2, .global_tokens = 2}},
          {tr("block-sparse"),
           {.kind = AttentionKind::block_sparse, .global_tokens = 2, .block = near, .random_blocks = 2}},
          {tr("linear"), {.kind = AttentionKind::linear}},
          {tr("random features"), {.kind = AttentionKind::performer, .features = 64}},
          {tr("low rank"), {.kind = AttentionKind::linformer, .rank = few, .positions = n}},
          {tr("landmarks"), {.kind = AttentionKind::nystrom, .landmarks = few}}};
}

void methods(Page& page) {
  page.exercise("10.7.4");
  page.say(tr(
      "With $n$ tokens there are $n^2$ pairs, and every pair costs a product. The exact kernel of this program never "
      "stores the weights, so its memory grows with $n$ alone; the time remains. The table of 8,192 tokens below has "
      "both, and the part after it says how far exact attention goes."));
  page.exercise("10.7.5");
  page.say(tr("Everything cheaper must leave pairs out or avoid looking at pairs at all:"));
  page.word_table(
      {tr("kind"), tr("what a token sees"), tr("products"), tr("causal")},
      {{tr("exact attention"), tr("all tokens"), verbatim("$n^2 d$"), tr("yes")},
       {tr("window"), tr("the $w$ tokens on each side"), verbatim("$n w d$"), tr("yes")},
       {tr("dilated, global"), tr("every second token of a wider window, and the first tokens"), verbatim("$n w d$"),
        tr("yes")},
       {tr("block-sparse"), tr("its block, its neighbours, the first tokens and random blocks"), verbatim("$n b d$"),
        tr("yes")},
       {tr("linear"), tr("a sum over all tokens, made once for all queries"), verbatim("$n d^2$"),
        tr("yes, as a running sum")},
       {tr("random features"), tr("the same, with features that imitate softmax"), verbatim("$n m d$"), tr("yes")},
       {tr("low rank"), tr("$r$ learned mixtures of all tokens"), verbatim("$n r d$"), tr("no")},
       {tr("landmarks"), tr("$m$ means of segments"), verbatim("$n m d$"), tr("no")}});
  page.formula(
      "f(q_i) = \\frac{\\phi(q_i)^T \\sum_j \\phi(k_j) v_j^T}{\\phi(q_i)^T \\sum_j \\phi(k_j)}, \\quad \\phi(x) = "
      "\\mathrm{elu}(x) + 1");
  page.say(tr(
      "This is linear attention (Katharopoulos et al., 2020): the sum over $j$ does not depend on $i$, so it is made "
      "once; for a causal model it grows token by token. With $\\phi(x) = e^{w \\cdot x - x \\cdot x / 2}$ for random "
      "directions $w$ the product of two features is on average $e^{q \\cdot k}$ (Choromanski et al., 2021). In a "
      "configuration all of them are one setting, `attention_kind`, and each trains inside a Transformer."));
}

void weights_in_effect(Page& page) {
  page.heading(tr("Where each of them looks, and where it errs"));
  page.say(
      tr("Every kind is linear in the values, so it has weights in effect: the output for values that are the identity "
         "matrix. Here are those of one head on {n} tokens that look for near tokens and for copies of themselves; and "
         "below, how far they are from the exact ones. (Low rank is missing: its mixtures must be learned first.)",
         "n"_a = kMapLength));
  const Tensor x = text_like(kMapLength, kWidth, Rng(page.seed()).at("maps"));
  std::vector<Kind> all = kinds(kMapLength);
  std::erase_if(all, [](const Kind& kind) { return kind.options.kind == AttentionKind::linformer; });
  std::vector<Tensor> maps, errors;
  std::vector<Label> titles;
  std::vector<double> missed;
  for (const Kind& kind : all) {
    maps.push_back(weights_of(kind.options, x));
    errors.push_back(sub(maps.back(), maps[0]));
    missed.push_back(0.5 * sum(abs(errors.back())).item() / kMapLength);
    titles.emplace_back(kind.name);
  }
  page.draw("weights", heatmaps(stack(maps), tr("Keys"), tr("Queries"), titles),
            tr("Weights in effect. Those of landmarks may be negative."));
  page.draw("errors",
            heatmaps(slice(stack(errors), 0, 1, std::ssize(errors)), tr("Keys"), tr("Queries"),
                     {titles.begin() + 1, titles.end()}),
            tr("The same minus the exact weights. Sparse kinds give nothing to what they leave out (blue) and too much "
               "to the rest (red); the others miss the peaks."));
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (size_t i = 0; i < all.size(); ++i) rows.push_back({all[i].name, {percent(missed[i])}});
  named_table(page, {tr("kind"), tr("weight in the wrong place")}, rows);
  // Outside the pattern a sparse kind has exactly 0; inside, its weights are never smaller than the exact ones.
  bool zero_or_more = true;
  for (size_t i = 1; i <= 3; ++i)
    for (int64_t cell = 0; cell < maps[i].numel(); ++cell)
      zero_or_more &= maps[i].ptr()[cell] == 0 || maps[i].ptr()[cell] >= maps[0].ptr()[cell] * 0.9999f;
  page.claim(zero_or_more,
             tr("A sparse kind has a weight of exactly 0 on what it leaves out, and at least the exact weight on what "
                "it keeps: what is missing elsewhere goes to the others."),
             tr("weight in the wrong place: window {window}, dilated {dilated}, block-sparse {blocks}",
                "window"_a = percent(missed[1]), "dilated"_a = percent(missed[2]), "blocks"_a = percent(missed[3])));
  page.claim(
      missed[6] < missed[4],
      tr("Landmarks come closer to the exact weights than linear attention, which does not try to imitate them."),
      tr("{landmarks} of the weight is in the wrong place with landmarks, {linear} with linear attention",
         "landmarks"_a = percent(missed[6]), "linear"_a = percent(missed[4])));
}

void linear_is_its_definition(Page& page) {
  page.heading(tr("Linear attention is exact about what it computes"));
  constexpr int64_t n = 1024, d = 32;
  const Rng rng = Rng(page.seed()).at("definition");
  const Tensor q = normal({1, 1, n, d}, rng.at("q")), k = normal({1, 1, n, d}, rng.at("k")),
               v = normal({1, 1, n, d}, rng.at("v"));
  Tensor weights = matmul(LinearAttention::features(q), LinearAttention::features(k), Transpose::no, Transpose::yes);
  double worst = 0;
  for (const bool causal : {false, true}) {
    Tensor seen = ones({1, 1, n, n});
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n && causal; ++j) seen.mutable_ptr()[i * n + j] = 0;
    const Tensor shown = mul(weights, seen), quadratic = div(matmul(shown, v), sum(shown, -1, KeepDims::yes));
    const Tensor fast = LinearAttention{}(q, k, v, causal ? PlainMask{.offset = 0} : PlainMask{});
    worst = std::max(worst, largest_difference(fast, quadratic) / max(abs(quadratic)).item());
  }
  page.claim(worst < 1e-5,
             tr("Computed in one pass, with and without a causal mask, it equals its quadratic definition to 1e-5 of "
                "the largest output."),
             tr("{worst} at {n} tokens", "worst"_a = tiny(worst), "n"_a = n));
}

}  // namespace long_inputs

Lab long_inputs_lab() {
  using namespace long_inputs;
  return {"10.7.4",
          "long-inputs",
          tr("Long inputs"),
          {methods, weights_in_effect, linear_is_its_definition, cost, slow(exact_reach), slow(tasks), slow(swapped),
           slow(summary)},
          false,
          60,
          3};
}

}  // namespace qkv::labs
