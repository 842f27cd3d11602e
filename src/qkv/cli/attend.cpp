// qkv attend: attention pooling on array files.
#include <fmt/format.h>

#include <cstdio>

#include "qkv/attention/attend.h"
#include "qkv/cli/attend_input.h"
#include "qkv/cli/command.h"
#include "qkv/io/npy.h"
#include "qkv/ops/attention_composed.h"
#include "qkv/plot/save.h"
#include "qkv/report/attention.h"

namespace qkv::cli {
namespace {

void check_npy_path(const char* option, const std::optional<std::string>& path) {
  if (path && !path->ends_with(".npy"))
    throw UsageError(tr("{option} must end in .npy, got \"{path}\"", "option"_a = option, "path"_a = *path));
}

class Attend : public Command {
 public:
  std::string name() const override { return "attend"; }
  Text summary() const override { return tr("attention pooling on .npy or .csv files, step by step with --explain"); }
  std::string example() const override {
    return "qkv attend --query q.npy --key k.npy --value v.npy --valid-lens 2,6 --explain --plot heat.svg";
  }

  void bind(Options& o) override {
    o.option("--score NAME", tr("the scoring function"), scorer_.kind, offered_scorers());
    o.option("--query FILE", tr("queries (L, D), (B, L, D) or (B, H, L, D); .csv is (L, D)"), query_);
    o.option("--key FILE", tr("keys; if they have fewer heads than the queries, heads are shared in order"), key_);
    o.option("--value FILE", tr("values, one per key"), value_);
    o.option("--valid-lens LENGTHS",
             tr("how many keys are valid: 2,6 (one number per batch row) or an .npy (B) or (B, Lq)"), mask_.valid_lens);
    o.flag("--causal", tr("query i sees keys 0 .. i"), mask_.causal);
    o.option("--window L,R", tr("query i sees keys i - L .. i + R"), mask_.window);
    o.option("--keep FILE", tr("1 where a query sees a key, else 0: (Lq, Lk) or (B, H, Lq, Lk)"), mask_.keep);
    o.option("--bias FILE", tr("added to the scores; -inf hides"), mask_.bias);
    o.option("--scale S", tr("factor of scaled-dot, in place of 1 / sqrt(D)"), scorer_.scale);
    o.option("--bandwidth H", tr("bandwidth of the kernels (default 1)"), scorer_.bandwidth);
    o.option("--temperature T", tr("temperature of cosine and salience (default 1)"), scorer_.temperature);
    o.option("--params FILE", params_help(), scorer_.params);
    o.option("-o,--output FILE", tr("write the output as .npy instead of printing it"), output_);
    o.option("--weights FILE", tr("write the weights (B, H, Lq, Lk) as .npy"), weights_);
    o.option("--plot FILE", tr("draw the weights: .svg, .png or .txt"), plot_);
    o.flag("--explain", tr("print every step with its shape, and its numbers if there are few"), explain_);
    o.flag("--json", tr("print the output as JSON"), json_);
  }

  int run(const Global& global) override {
    check_usage();
    const AnyScorer scorer = read_scorer(scorer_);
    const Tensor q = read_tensor(*query_), k = read_tensor(*key_), v = read_tensor(*value_);
    require(!facts_of(scorer_.kind).equal_widths || q.rank() == 0 || k.rank() == 0 || q.size(-1) == k.size(-1),
            "[attend] query and key widths differ: {q} x {k}", "q"_a = q.shape(), "k"_a = k.shape());
    const Mask mask = read_mask(mask_);
    const Attended attended = attend(scorer, q, k, v, mask);
    if (!all_finite(attended.output) && all_finite(q) && all_finite(k) && all_finite(v))
      throw Error(
          tr("the output is not finite, although queries, keys and values are: the scores overflow a float, or the "
             "bias is NaN"),
          tr("use smaller numbers, or a smaller --scale"));
    if (explain_) fmt::print("{}", report::explanation({scorer, mask, q, k, v}, attended, global.language));
    if (json_) fmt::print("{}\n", report::to_json(attended));
    if (output_) write_npy(*output_, attended.output);
    if (weights_) write_npy(*weights_, attended.weights.matrix());
    if (plot_) save(report::weight_maps(attended.weights, q.rank()), *plot_, global.language);
    if (!output_ && !explain_ && !json_) fmt::print("{}", report::numbers_text(attended.output, ""));
    note_empty_rows(attended.weights, global);
    return 0;
  }

 private:
  static void note_empty_rows(const Weights& weights, const Global& global) {
    const int64_t queries = weights.shape().product(0, 3);
    if (weights.empty_rows() == 1)
      global.note(tr("1 of {queries} queries sees no key; its output is 0", "queries"_a = queries));
    if (weights.empty_rows() > 1)
      global.note(tr("{rows} of {queries} queries see no key; their output is 0", "rows"_a = weights.empty_rows(),
                     "queries"_a = queries));
  }

  void check_usage() const {
    using Needed = std::pair<const char*, const std::optional<std::string>*>;
    for (const auto& [option, value] : {Needed{"--query", &query_}, Needed{"--key", &key_}, Needed{"--value", &value_}})
      if (!*value)
        throw UsageError(tr("{option} FILE is missing", "option"_a = option), tr("qkv attend --help shows an example"));
    check_npy_path("--output", output_);
    check_npy_path("--weights", weights_);
    if (json_ && explain_) throw UsageError(tr("--json and --explain exclude each other"));
    if (plot_) check_figure_path(*plot_);
  }

  ScorerOptions scorer_;
  MaskOptions mask_;
  std::optional<std::string> query_, key_, value_, output_, weights_, plot_;
  bool explain_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> attend_command() { return std::make_unique<Attend>(); }

}  // namespace qkv::cli
