// Lab 10.3: scoring functions. The definition, masked softmax, and the batched product.
#include "qkv/labs/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/attention/attend.h"
#include "qkv/attention/masked_softmax.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/shape.h"

namespace qkv::labs {
namespace scoring {

void definition(Page& page) {
  page.heading(tr("A score for every pair"));
  page.say(tr(
      "Lab 10.2 estimated the body mass of a fourth person from three others (waists 51, 56, 58 cm; 40, 43, 48 kg; "
      "query 57 cm). Here its kernel is taken apart: a **scoring function** $a(q, k)$ says how well a query fits a "
      "key, softmax turns the scores into weights, and the answer is the weighted mean of the values. The rest of this "
      "section changes $a$ and nothing else."));
  page.formula(
      "\\alpha(q, k_i) = \\softmax_i(a(q, k_i)), \\quad f(q) = \\sum_i \\alpha(q, k_i) v_i, \\quad a(q, k) = "
      "-\\frac{1}{2} (q - k)^2");
  const Attended a =
      attend(Gaussian{}, Tensor({1, 1}, {57}), Tensor({3, 1}, {51, 56, 58}), Tensor({3, 1}, {40, 43, 48}));
  const Tensor w = a.weights.row(0, 0, 0);
  page.claim(
      std::abs(a.output.item() - 45.5) < 1e-4 && std::abs(w.ptr()[0] - 1.2555e-8) < 1e-12,
      tr("With the Gaussian score the answer is 45.5, as in lab 10.2: the distant person counts too, with a negligible "
         "weight."),
      tr("f(57) = {f:.5f}, weights {first:.1e}, {second:.3f}, {third:.3f}", "f"_a = a.output.item(),
         "first"_a = w.ptr()[0], "second"_a = w.ptr()[1], "third"_a = w.ptr()[2]));
}

void masking(Page& page) {
  page.heading(tr("Masked softmax"));
  page.say(tr(
      "The sentences of a batch have different lengths and are filled up with padding, which must get no weight. "
      "**Masked softmax** takes the softmax over only the first entries of each row, as many as its **valid length**, "
      "and gives the others exactly 0. The scores have shape (2, 2, 4): two batch elements, two queries, four keys. A "
      "length per batch element applies to both of its queries; here 2 and 3:"));
  const Tensor x = uniform({2, 2, 4}, Rng(page.seed()).at("masking"));
  const Tensor one = masked_softmax(x, Ids({2}, {2, 3})), two = masked_softmax(x, Ids({2, 2}, {1, 3, 2, 4}));
  page.print(shown(one));
  page.say(tr("A length per query makes a (2, 2) matrix, here 1, 3 and 2, 4:"));
  page.print(shown(two));
  const Tensor both = reshape(stack({one, two}), {2, 4, 4});
  page.draw("masked-softmax",
            heatmaps(both, tr("Keys"), tr("batch × queries"), {tr("lengths 2, 3"), tr("lengths 1, 3, 2, 4")},
                     {.colours = {.low = 0, .high = 1}, .cell_values = true}),
            tr("The four rows of both results: no weight beyond the valid length."),
            report::BenchLink("scores")
                .set("score", "dot")
                .set("q", x.viewed({4, 4}))
                .set("k", eye(4))
                .set("v", eye(4))
                .set("lens", "2, 2, 3, 3"));
  bool zeros_beyond = true;
  double worst = 0;
  const int lengths[2][4] = {{2, 2, 3, 3}, {1, 3, 2, 4}};
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t r = 0; r < 4; ++r) {
      double total = 0;
      for (int64_t c = 0; c < 4; ++c) {
        const float w = both.at({p, r, c});
        total += w;
        zeros_beyond = zeros_beyond && (c < lengths[p][r] ? w > 0 : w == 0);
      }
      worst = std::max(worst, std::abs(total - 1));
    }
  page.claim(zeros_beyond && worst < 1e-6 && both.at({1, 0, 0}) == 1,
             tr("Rows sum to one, entries beyond the length are exactly 0, and a length of 1 gives exactly 1."),
             tr("largest |Σα − 1| {worst}", "worst"_a = tiny(worst)));
}

void minus_a_million(Page& page) {
  page.heading(tr("Why not minus a million"));
  page.say(tr(
      "The book masks by overwriting scores with $-10^6$ before an ordinary softmax. That works as long as the visible "
      "scores are far above that. There are two corner cases. A row of length 0 contains only $-10^6$, which softmax "
      "makes uniform: a query that may see nothing attends to the padding. And where visible scores are themselves "
      "near $-10^6$, the masked keys come back. Here a masked entry is left out of the sum, and a row that sees "
      "nothing gives zeros."));
  const Tensor x = uniform({1, 2, 4}, Rng(page.seed()).at("corner"));
  const Ids lengths({1, 2}, {0, 2});
  const Tensor ours = masked_softmax(x, lengths), book = book_masked_softmax(x, lengths);
  page.table({tr("length"), tr("here"), tr("with $-10^6$")},
             {{"0", shown(ours.part(0, {4}), 3), shown(book.part(0, {4}), 3)},
              {"2", shown(ours.part(4, {4}), 3), shown(book.part(4, {4}), 3)}});
  bool uniform_row = true, zero_row = true;
  for (int64_t c = 0; c < 4; ++c) {
    uniform_row = uniform_row && std::abs(book.ptr()[c] - 0.25f) < 1e-6f;
    zero_row = zero_row && ours.ptr()[c] == 0;
  }
  page.claim(zero_row && uniform_row, tr("Length 0: zeros here, uniform weights on padding with $-10^6$."),
             tr("weights 0 here, 0.25 with −10⁶"));

  std::vector<double> above, leak, none;
  for (double t = -12; t <= 12; t += 1) {
    const Tensor level = full({1, 1, 4}, static_cast<float>(-1e6 + t));
    const Tensor p = book_masked_softmax(level, Ids({1}, {2})), here = masked_softmax(level, Ids({1}, {2}));
    above.push_back(t);
    leak.push_back(p.ptr()[2] + p.ptr()[3]);
    none.push_back(here.ptr()[2] + here.ptr()[3]);
  }
  page.draw(
      "leaking-mask",
      curves({{tr("with −10⁶"), above, leak}, {tr("here"), above, none}}, {.label = tr("visible score + 10⁶")},
             {.label = tr("weight on masked keys"), .low = -0.03, .high = 1.03}),
      tr("Two visible and two masked keys. As the visible scores fall below minus a million, the masked keys take "
         "over."));
  page.claim(leak.front() > 0.99 && *std::max_element(none.begin(), none.end()) == 0,
             tr("With scores near $-10^6$ weight leaks through the book's mask, never through this one."),
             tr("weight on masked keys at a visible score of −10⁶ − 12: {leak:.6f} with −10⁶, 0 here",
                "leak"_a = leak.front()));

  Tensor v = ones({1, 4, 1});
  v.mutable_ptr()[3] = std::numeric_limits<float>::quiet_NaN();
  const float seen =
      attend(Constant{}, zeros({1, 1, 1}), zeros({1, 4, 1}), v, Mask::valid_lens(Ids({1}, {2}))).output.item();
  const float product = matmul(book_masked_softmax(zeros({1, 1, 4}), Ids({1}, {2})), v).item();
  page.say(tr(
      "Even a weight of 0 does not protect against a bad value: $0 \\cdot \\mathrm{NaN}$ is NaN. Uninitialised padding "
      "would spoil the output of a plain product; `attend` does not read it."));
  page.claim(seen == 1 && std::isnan(product),
             tr("A NaN in the padding spoils the plain product but not the attention."),
             tr("the product gives {product}, the attention {attention}", "product"_a = product, "attention"_a = seen));
}

void batched_product(Page& page) {
  page.heading(tr("The batched matrix product"));
  page.say(
      tr("Weights times values for a whole batch is one matrix product per batch element: $(n, a, b) \\times (n, b, c) "
         "\\to (n, a, c)$."));
  const Tensor first = matmul(ones({2, 1, 4}), ones({2, 4, 6})), second = matmul(ones({2, 3, 4}), ones({2, 4, 6}));
  const Tensor weights = full({2, 1, 10}, 0.1f), values = arange(0, 20).viewed({2, 10, 1});
  const Tensor pooled = matmul(weights, values);
  page.print(text("(2, 1, 4) x (2, 4, 6) -> ", first.shape(), "\n(2, 3, 4) x (2, 4, 6) -> ", second.shape(),
                  "\n0.1 x (0 .. 9), 0.1 x (10 .. 19):\n", shown(pooled)));
  page.fact(tr("Ten weights of 0.1 average ten values."),
            tr("{first:.4f} and {second:.4f}", "first"_a = pooled.ptr()[0], "second"_a = pooled.ptr()[1]));
}

}  // namespace scoring

Lab scoring_lab() {
  return {
      "10.3",
      "scoring",
      tr("Attention scoring functions"),
      {scoring::definition, scoring::masking, scoring::minus_a_million, scoring::batched_product, scoring::equal_keys,
       scoring::random_keys, scoring::different_keys, scoring::bilinear, scoring::vector_sum, scoring::distance,
       scoring::square_root_of_d, scoring::measures, scoring::saturation, scoring::cost, scoring::errata},
      false,
      2};
}

}  // namespace qkv::labs
