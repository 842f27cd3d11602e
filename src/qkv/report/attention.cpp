// An attention as text, as JSON and as heat maps.
#include "qkv/report/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "qkv/ops/elementwise.h"
#include "qkv/report/nested_json.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

bool few_numbers(const Shape& s) { return s.numel() <= 400 && s[-1] <= 16; }  // larger ones are not printed

Tensor four_axes(const Tensor& x) {
  const Shape s = x.shape();
  return x.viewed(s.rank() == 4 ? s : s.rank() == 3 ? Shape{s[0], 1, s[1], s[2]} : Shape{1, 1, s[0], s[1]});
}

// The shape of the weights, with as many axes as the queries.
Shape pair_shape(const Tensor& q, const Tensor& k) {
  Shape s = q.shape();
  s.set(-1, k.size(-2));
  return s;
}

std::string step(const std::string& line, const Shape& shape, const Tensor& values) {
  std::string out = line + "  " + shape.str() + "\n";
  if (values.defined() && few_numbers(values.shape())) out += numbers_text(values, "  ");
  return out;
}

// Repeats key heads for the query heads that share them.
Tensor all_heads(const Tensor& k, int64_t heads) {
  const int64_t shared = heads / k.size(1), block = k.size(2) * k.size(3);
  Tensor out = Tensor::empty({k.size(0), heads, k.size(2), k.size(3)});
  for (int64_t n = 0; n < k.size(0) * heads; ++n)
    std::copy_n(k.ptr() + n / shared * block, block, out.mutable_ptr() + n * block);
  return out;
}

// Scores with the bias added, and -inf for hidden keys.
Tensor masked(const Tensor& scores, const AttentionPlan& plan, int64_t& hidden) {
  const Shape s = scores.shape();
  Tensor out = Tensor::empty(s);
  for (int64_t n = 0; n < s.numel(); ++n) {
    const int64_t r = n / s[3], j = n % s[3];
    const PlanRow row = plan.row(r / s[2] / s[1], r / s[2] % s[1], r % s[2], s[3]);
    hidden += !row.sees(j);
    out.mutable_ptr()[n] = row.sees(j) ? scores.ptr()[n] + row.added(j) : -std::numeric_limits<float>::infinity();
  }
  return out;
}

}  // namespace

std::string numbers_text(const Tensor& x, const std::string& indent) {
  const int64_t columns = x.rank() ? x.size(-1) : 1, rows = columns ? x.numel() / columns : 0;
  const int64_t height = x.rank() >= 2 ? x.size(-2) : 1;
  std::vector<std::string> cells;
  size_t width = 0;
  for (float v : x.data()) {
    cells.push_back(fmt::format("{:.6g}", v == 0 ? 0.f : v));
    width = std::max(width, cells.back().size());
  }
  std::string out;
  for (int64_t r = 0; r < rows; ++r) {
    if (r && height && r % height == 0) out += "\n";
    out += indent;
    for (int64_t c = 0; c < columns; ++c)
      out += fmt::format("{}{:>{}}", c ? "  " : "", cells[static_cast<size_t>(r * columns + c)], width);
    out += "\n";
  }
  return out;
}

std::string explanation(const ExplainInput& in, const Attended& attended, Language language) {
  const Tensor q = four_axes(in.q), k = four_axes(in.k);
  const Shape pairs = pair_shape(in.q, in.k), weights{q.size(0), q.size(1), q.size(2), k.size(2)};
  const bool few = few_numbers(weights);
  std::string out =
      tr("inputs   Q {q}  K {k}  V {v}\n", "q"_a = in.q.shape(), "k"_a = in.k.shape(), "v"_a = in.v.shape())
          .in(language);
  Tensor scores;
  const auto* scaled = in.scorer.as<ScaledDot>();
  if (few) {
    const Tensor keys = all_heads(k, q.size(1));
    scores = scaled ? Dot{}.scores(q, keys) : in.scorer.scores(q, keys);
  }
  out += step(tr("scores   {formula}", "formula"_a = facts_of(in.scorer.kind()).formula).in(language), pairs, scores);
  if (scaled) {
    const float factor = scaled->scale_for(q.size(3));
    const Text formula = scaled->scale ? tr("scale    times {factor:.6g}", "factor"_a = factor)
                                       : tr("scale    divided by sqrt({width})", "width"_a = q.size(3));
    if (few) scores = scale(scores, factor);
    out += step(formula.in(language), pairs, scores);
  }
  if (!in.mask.is_none()) {
    int64_t hidden = 0;
    if (few)
      scores =
          masked(scores, in.mask.plan("attend", {q.size(0), q.size(1), q.size(2), k.size(2), in.q.rank()}), hidden);
    const Text line =
        few ? tr("mask     hidden keys become -inf: {hidden} of {all}", "hidden"_a = hidden, "all"_a = weights.numel())
            : tr("mask     hidden keys become -inf");
    out += step(line.in(language), pairs, scores);
  }
  out +=
      step(tr("softmax  over the keys of each query").in(language), pairs, few ? attended.weights.matrix() : Tensor());
  out += step(tr("output   weights times V").in(language), attended.output.shape(), attended.output);
  return out;
}

std::string to_json(const Attended& attended) {
  const Shape& shape = attended.output.shape();
  const Json json = {{"shape", std::vector<int64_t>(shape.begin(), shape.end())},
                     {"output", nested_json<Json>(attended.output)},
                     {"empty_rows", attended.weights.empty_rows()}};
  return json.dump();
}

Figure weight_maps(const Weights& weights, int rank) {
  constexpr int64_t kPanels = 64;
  const Shape s = weights.shape();
  check(s[0] * s[1] >= 1 && s[0] * s[1] <= kPanels && s[2] > 0 && s[3] > 0, "[attend] cannot draw weights ", s,
        ": 1 to ", kPanels, " heat maps");
  const Tensor matrix = weights.matrix();
  return heatmaps(rank == 4 ? matrix : matrix.viewed({1, s[0], s[2], s[3]}), tr("Keys"), tr("Queries"));
}

}  // namespace qkv::report
