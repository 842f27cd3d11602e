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
  if (path && !path->ends_with(".npy")) throw UsageError(text(option, " must end in .npy, got \"", *path, "\""));
}

class Attend : public Command {
 public:
  std::string name() const override { return "attend"; }
  Text summary() const override {
    return {"attention pooling on .npy or .csv files, step by step with --explain",
            "对 .npy 或 .csv 文件做注意力汇聚，--explain 逐步说明"};
  }
  std::string example() const override {
    return "qkv attend --query q.npy --key k.npy --value v.npy --valid-lens 2,6 --explain --plot heat.svg";
  }

  void bind(Options& o) override {
    o.option("--score NAME", {"the scoring function", "评分函数"}, scorer_.kind, offered_scorers());
    o.option("--query FILE",
             {"queries (L, D), (B, L, D) or (B, H, L, D); .csv is (L, D)",
              "查询 (L, D)、(B, L, D) 或 (B, H, L, D)；.csv 为 (L, D)"},
             query_);
    o.option("--key FILE",
             {"keys; fewer heads than the queries have are shared in order", "键；头数可少于查询，按次序共用"}, key_);
    o.option("--value FILE", {"values, one a key", "值，与键一一对应"}, value_);
    o.option("--valid-lens LENGTHS",
             {"keys that count: 2,6 (one a batch row) or an .npy (B) or (B, Lq)",
              "有效长度：2,6（每个批次一个）或 .npy 文件"},
             mask_.valid_lens);
    o.flag("--causal", {"query i sees keys 0 .. i", "查询 i 只看键 0 .. i"}, mask_.causal);
    o.option("--window L,R", {"query i sees keys i - L .. i + R", "查询 i 只看键 i - L .. i + R"}, mask_.window);
    o.option("--keep FILE",
             {"1 where a query sees a key, else 0: (Lq, Lk) or (B, H, Lq, Lk)", "查询可见键处为 1，否则为 0"},
             mask_.keep);
    o.option("--bias FILE", {"added to the scores; -inf hides", "加到分数上；-inf 表示遮蔽"}, mask_.bias);
    o.option("--scale S", {"of scaled-dot, in place of 1 / sqrt(D)", "scaled-dot 的系数，代替 1 / sqrt(D)"},
             scorer_.scale);
    o.option("--bandwidth H", {"of the kernels (default 1)", "核函数的带宽（默认 1）"}, scorer_.bandwidth);
    o.option("--temperature T", {"of cosine and salience (default 1)", "cosine 与 salience 的温度（默认 1）"},
             scorer_.temperature);
    o.option("--params FILE", params_help(), scorer_.params);
    o.option("-o,--output FILE", {"write the output as .npy instead of printing it", "将输出写成 .npy，不再打印"},
             output_);
    o.option("--weights FILE", {"write the weights (B, H, Lq, Lk) as .npy", "将权重 (B, H, Lq, Lk) 写成 .npy"},
             weights_);
    o.option("--plot FILE", {"draw the weights: .svg, .png or .txt", "画出权重：.svg、.png 或 .txt"}, plot_);
    o.flag(
        "--explain",
        {"print every step with its shape, and its numbers when there are few", "打印每一步的形状，数目少时打印数值"},
        explain_);
    o.flag("--json", {"print the output as JSON", "以 JSON 打印输出"}, json_);
  }

  int run(const Global& global) override {
    check_usage();
    const AnyScorer scorer = read_scorer(scorer_);
    const Tensor q = read_tensor(*query_), k = read_tensor(*key_), v = read_tensor(*value_);
    check(!facts_of(scorer_.kind).equal_widths || q.rank() == 0 || k.rank() == 0 || q.size(-1) == k.size(-1),
          "[attend] query and key widths differ: ", q.shape(), " x ", k.shape());
    const Mask mask = read_mask(mask_);
    const Attended attended = attend(scorer, q, k, v, mask);
    if (!all_finite(attended.output) && all_finite(q) && all_finite(k) && all_finite(v))
      throw Error(
          "the output is not finite, although queries, keys and values are: the scores pass the largest float, or the bias is not a number",
          "smaller numbers, or a smaller --scale, keep the scores finite");
    if (explain_) fmt::print("{}", report::explanation({scorer, mask, q, k, v}, attended));
    if (json_) fmt::print("{}\n", report::to_json(attended));
    if (output_) write_npy(*output_, attended.output);
    if (weights_) write_npy(*weights_, attended.weights.matrix());
    if (plot_) save(report::weight_maps(attended.weights, q.rank()), *plot_);
    if (!output_ && !explain_ && !json_) fmt::print("{}", report::numbers_text(attended.output, ""));
    if (attended.empty_rows > 0 && !global.quiet)
      fmt::print(stderr, "qkv: note: {} of {} queries see no key; their output is 0\n", attended.empty_rows,
                 attended.weights.shape().product(0, 3));
    return 0;
  }

 private:
  void check_usage() const {
    using Needed = std::pair<const char*, const std::optional<std::string>*>;
    for (const auto& [option, value] : {Needed{"--query", &query_}, Needed{"--key", &key_}, Needed{"--value", &value_}})
      if (!*value) throw UsageError(text(option, " FILE is missing"), "qkv attend --help shows an example");
    check_npy_path("--output", output_);
    check_npy_path("--weights", weights_);
    if (json_ && explain_) throw UsageError("--json and --explain exclude each other");
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
