// POST /attend: attention on small matrices, step by step; POST /cues: attention over a few things on a desk.
#include <cmath>
#include <limits>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/attend.h"
#include "qkv/attention/masked_softmax.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/softmax.h"
#include "qkv/report/attention.h"
#include "qkv/serve/call.h"

namespace qkv::serve {
namespace {

constexpr int64_t kMost = 64;  // rows and columns of a matrix

// -inf and NaN have no number in JSON: they are the texts "-inf" and "nan".
Json shown(const Tensor& x) {
  Json rows = Json::array();
  const int64_t columns = x.size(-1), count = columns ? x.numel() / columns : 0;
  for (int64_t r = 0; r < count; ++r) {
    Json row = Json::array();
    for (int64_t c = 0; c < columns; ++c) {
      const float v = x.ptr()[r * columns + c];
      row.push_back(std::isfinite(v) ? Json(v) : Json(std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf"));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Ids whole_numbers(const std::vector<double>& values, const char* name, double most) {
  Ids out = Ids::empty({1, std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) {
    require(values[i] >= 0 && values[i] <= most && values[i] == std::floor(values[i]),
            "{field}: expected whole numbers from 0 to {most}, got {value}", "field"_a = name, "most"_a = most,
            "value"_a = values[i]);
    out.mutable_ptr()[i] = static_cast<int32_t>(values[i]);
  }
  return out;
}

Mask read_mask(const Fields& in, int64_t queries, int64_t keys) {
  Mask mask;
  if (in.has("lens")) {
    Ids lens = whole_numbers(in.numbers("lens", kMost), "lens", 1e9);
    require(lens.size(1) == 1 || lens.size(1) == queries, "lens: expected 1 or {queries} numbers, got {count}",
            "queries"_a = queries, "count"_a = lens.size(1));
    mask = mask & Mask::valid_lens(lens.size(1) == 1 ? Ids({1}, {lens.ptr()[0]}) : lens);
  }
  if (in.flag("causal", false)) mask = mask & Mask::causal();
  if (in.has("window")) {
    const Ids sides = whole_numbers(in.numbers("window", 2), "window", 1e9);
    require(sides.size(1) == 2, "window: expected 2 numbers, got {count}", "count"_a = sides.size(1));
    mask = mask & Mask::window(sides.ptr()[0], sides.ptr()[1]);
  }
  if (in.has("keep")) {
    const Tensor keep = in.matrix("keep", kMost, kMost);
    require(keep.size(0) == queries && keep.size(1) == keys,
            "keep: is {rows} x {columns}; the weights are {queries} x {keys}", "rows"_a = keep.size(0),
            "columns"_a = keep.size(1), "queries"_a = queries, "keys"_a = keys);
    mask = mask & Mask::keep(keep);
  }
  return mask;
}

AnyScorer read_scorer(const Fields& in, ScorerKind kind) {
  const ScorerInputs inputs = inputs_of(kind);
  ScorerValues values;
  if (in.has("scale")) values.scale = in.number("scale", -1e30, 1e30);
  if (in.has("bandwidth")) values.bandwidth = in.number("bandwidth", 1e-30, 1e30);
  if (inputs.temperature && in.has("temperature")) values.temperature = in.number("temperature", 1e-30, 1e30);
  for (const auto& [name, needed] : inputs.tensors) {
    if (!in.has("params") || !in.object("params").has(name.c_str())) {
      require(!needed, "params.{name} is missing: {scorer} needs {tensors}", "name"_a = name,
              "scorer"_a = facts_of(kind).name, "tensors"_a = facts_of(kind).tensors);
      continue;
    }
    const Fields params = in.object("params");
    const Json& given = params.at(name.c_str());
    const bool flat = given.is_array() && !given.empty() && given[0].is_number();
    if (!flat) {
      values.tensors[name] = params.matrix(name.c_str(), kMost, kMost);
      continue;
    }
    Tensor one = Tensor::empty({std::ssize(given)});
    const auto numbers = params.numbers(name.c_str(), kMost * kMost);
    for (size_t i = 0; i < numbers.size(); ++i) one.mutable_ptr()[i] = static_cast<float>(numbers[i]);
    values.tensors[name] = one;
  }
  return make_scorer(kind, values);
}

// Scores with -inf for the keys that a query does not see; `book` puts the book's -1e6 there.
Tensor masked(const Tensor& scores, const AttentionPlan& plan, float hidden) {
  Tensor out = Tensor::empty(scores.shape());
  const int64_t keys = scores.size(1);
  for (int64_t i = 0; i < scores.size(0); ++i) {
    const PlanRow row = plan.row(0, 0, i, keys);
    for (int64_t j = 0; j < keys; ++j)
      out.mutable_ptr()[i * keys + j] = row.sees(j) ? scores.ptr()[i * keys + j] : hidden;
  }
  return out;
}

// A scorer at another temperature: all its scores divided by it.
struct Cooled {
  AnyScorer scorer;
  float temperature;
  Tensor scores(const Tensor& q, const Tensor& k) const { return scale(scorer.scores(q, k), 1 / temperature); }
};

}  // namespace

Json attend_steps(const Call& call) {
  const Fields in = call.fields();
  const ScorerKind kind = in.choice("score", ScorerKind::scaled_dot);
  require(kind != ScorerKind::none, "score: none is not a scorer");
  const Tensor q = in.matrix("q", kMost, kMost), k = in.matrix("k", kMost, kMost), v = in.matrix("v", kMost, kMost);
  const AnyScorer scorer = read_scorer(in, kind);
  const Mask mask = read_mask(in, q.size(0), k.size(0));
  const bool own = inputs_of(kind).temperature;
  const auto temperature = static_cast<float>(own ? 1 : in.number("temperature", 1e-6, 1e6, 1));
  const Attended attended =
      temperature == 1 ? attend(scorer, q, k, v, mask) : attend(Cooled{scorer, temperature}, q, k, v, mask);

  Json steps = Json::array();
  const auto add = [&](const char* name, const Json& values, const std::string& formula) {
    steps.push_back({{"name", name}, {"values", values}, {"formula", formula}});
  };
  const auto* scaled = scorer.as<ScaledDot>();
  const Tensor q4 = q.viewed({1, 1, q.size(0), q.size(1)}), k4 = k.viewed({1, 1, k.size(0), k.size(1)});
  Tensor scores = (scaled ? Dot{}.scores(q4, k4) : scorer.scores(q4, k4)).viewed({q.size(0), k.size(0)});
  add("scores", shown(scores),
      scaled ? std::string(facts_of(ScorerKind::dot).formula) : std::string(facts_of(kind).formula));
  const float factor = (scaled ? scaled->scale_for(q.size(1)) : 1.f) / temperature;
  scores = scale(scores, factor);
  add("scaled", shown(scores), text("times ", factor));
  const AttentionPlan plan = mask.plan("attend", {1, 1, q.size(0), k.size(0), 2});
  add("masked", shown(masked(scores, plan, -std::numeric_limits<float>::infinity())), "-inf where hidden");
  const Tensor weights = attended.weights.head(0, 0);
  add("weights", shown(weights), "softmax of each row");
  add("output", shown(attended.output), "weights times V");

  Json empty = Json::array();
  for (int64_t i = 0; i < weights.size(0); ++i) {
    const PlanRow row = plan.row(0, 0, i, k.size(0));
    bool any = false;
    for (int64_t j = 0; j < k.size(0); ++j) any = any || row.sees(j);
    if (!any) empty.push_back(i);
  }
  Json out = {{"score", name_of(kind)}, {"formula", facts_of(kind).formula}, {"steps", steps}, {"empty_rows", empty}};
  out["entropy"] = nested(attended.weights.entropy())[0][0];
  out["book_weights"] = shown(softmax(masked(scores, plan, -1e6f)));
  out["command"] = ask_line(call, "attend");
  return out;
}

Json cues(const Call& call) {
  const Fields in = call.fields();
  const auto want = in.numbers("want", 2);
  require(want.size() == 2, "want: expected 2 numbers, got {count}", "count"_a = want.size());
  const auto things = in.objects("things", 100);
  require(!things.empty(), "things: at least one is needed");
  const auto n = std::ssize(things);
  Tensor k = Tensor::empty({n, 2}), salience = Tensor::empty({1, n});
  for (int64_t i = 0; i < n; ++i) {
    const auto at = things[static_cast<size_t>(i)].numbers("at", 2);
    require(at.size() == 2, "things.at: expected 2 numbers, got {count}", "count"_a = at.size());
    for (int64_t a = 0; a < 2; ++a) k.mutable_ptr()[2 * i + a] = static_cast<float>(at[static_cast<size_t>(a)]);
    salience.mutable_ptr()[i] = static_cast<float>(things[static_cast<size_t>(i)].number("salience", -1e6, 1e6, 0));
  }
  const std::string pooling = in.text("pooling", "query");
  const auto temperature = static_cast<float>(in.number("temperature", 1e-6, 1e6, 1));
  const Tensor q({1, 2}, {static_cast<float>(want[0]), static_cast<float>(want[1])});
  Tensor scores;
  if (pooling == "average")
    scores = zeros({1, n});
  else if (pooling == "salience" || pooling == "max")
    scores = salience;
  else if (pooling == "query")  // nearness to what is wanted, with its sharpness as the temperature
    scores = NegativeSquaredDistance{}.scores(q.viewed({1, 1, 1, 2}), k.viewed({1, 1, n, 2})).viewed({1, n});
  else
    refuse_word("pooling", pooling, {"average", "max", "salience", "query"});
  Tensor weights = softmax(scale(scores, 1 / temperature));
  if (pooling == "max") {
    // All weight on the most salient thing; the earlier one among equals.
    const auto best = std::max_element(scores.ptr(), scores.ptr() + n) - scores.ptr();
    weights = zeros({1, n});
    weights.mutable_ptr()[best] = 1;
  }
  const Tensor answer = matmul(weights, k);
  return {{"weights", nested(weights)[0]}, {"scores", nested(scores)[0]},
          {"answer", nested(answer)[0]},   {"pooling", pooling},
          {"temperature", temperature},    {"command", ask_line(call, "cues")}};
}

}  // namespace qkv::serve
