// Lab 10.2: 300 runs of the book's experiment. What is luck, what gets stuck, and which of the notes' observations
// hold.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"

namespace qkv::labs::regression {
namespace {

constexpr double kStuck = 0.5;  // |w| after training below which nothing was learned

/// Runs below a value, as a curve over the sorted values.
Series share_below(const std::string& name, Vector v, const char* format) {
  std::sort(v.begin(), v.end());
  Vector share;
  for (size_t i = 0; i < v.size(); ++i) share.push_back(static_cast<double>(i + 1) / static_cast<double>(v.size()));
  return {name, v, share, line_style(format)};
}

std::vector<uint64_t> stuck_seeds() {
  std::vector<uint64_t> seeds;
  for (uint64_t k = 0; k < book_runs().size(); ++k)
    if (std::abs(book_runs()[k].w) < kStuck) seeds.push_back(k);
  return seeds;
}

/// (L(0.1) - L(0)) / 0.1^2: positive where w = 0 is a valley.
double curvature_at_zero(const Sample& s) { return (leave_one_out_loss(s, 0.1) - leave_one_out_loss(s, 0)) / 0.01; }

/// c - 2 n Cov(x, y)^2.
double predicted_curvature(const Sample& s) {
  const double n = static_cast<double>(s.x.size()), mx = mean(s.x), my = mean(s.y);
  double variance = 0, covariance = 0, c = 0;
  for (size_t i = 0; i < s.x.size(); ++i) {
    variance += (s.x[i] - mx) * (s.x[i] - mx) / n;
    covariance += (s.x[i] - mx) * (s.y[i] - my) / n;
  }
  for (size_t i = 0; i < s.x.size(); ++i)
    c += (s.y[i] - my) * (s.y[i] - my) * ((s.x[i] - mx) * (s.x[i] - mx) + variance) / n;
  return c - 2 * n * covariance * covariance;
}

}  // namespace

void runs_step(Page& page) {
  page.heading({"The same experiment 300 times", "把同一实验做 300 次"});
  page.say(
      {"One run proves little: data and start are random. Here it is repeated for the seeds 0 to 299; run k has exactly the data of `qkv "
       "lab 10.2 --seed k`. The error is the mean squared distance to the noise-free truth on the test inputs.",
       "只跑一次说明不了什么：数据和起点都是随机的。下面用种子 0 到 299 重复实验；第 k 次的数据与 `qkv lab 10.2 --seed k` "
       "完全相同。误差是测试输入上到无噪声真实值的均方距离。"});
  const Vector average = collect([](const BookRun&r) { return r.average; }),
               plain = collect([](const BookRun&r) { return r.plain; });
  const Vector learned = collect([](const BookRun&r) { return r.learned; }),
               w = collect([](const BookRun&r) { return std::abs(r.w); });
  const double medians[] = {median(average), median(plain), median(learned)}, expected[] = {0.89, 0.42, 0.115};
  const Text names[] = {{"average", "平均"}, {"width 1", "宽度 1"}, {"learned", "学习"}};
  std::vector<NamedRow> rows;
  bool near = true;
  for (int i = 0; i < 3; ++i) {
    rows.push_back({names[i], {rounded(medians[i], 3), rounded(expected[i], 3)}});
    near = near && std::abs(medians[i] / expected[i] - 1) < 0.1;
  }
  named_table(
      page,
      {{"pooling", "汇聚方式"}, {"median test error", "测试误差中位数"}, {"another simulation", "另一次独立模拟"}},
      rows);
  page.draw(
      "runs-errors",
      curves({share_below("average", average, "k:"), share_below("width 1", plain, "m--"),
              share_below("learned", learned, "b-")},
             {.label = "test error", .low = 0.02, .high = 2, .scale = AxisScale::log},
             {.label = "share of runs below", .low = 0, .high = 1}),
      {"Distribution of the test error over 300 runs. At its upper end the line of the learned pooling meets that of the average: those runs "
       "did not start.",
       "300 次实验的测试误差分布。“学习”那条曲线的上端与“平均”的曲线相接：那些实验没有真正开始学习。"});
  page.claim(near,
             {"The median errors are within 10 % of an independent simulation of the same experiment.",
              "误差中位数与同一实验的独立模拟相差不超过 10%。"},
             fmt::format("average {:.3f}, width 1 {:.3f}, learned {:.3f}", medians[0], medians[1], medians[2]));
  const int64_t better = count_above(collect([](const BookRun& r) { return r.plain - r.learned; }), 0);
  page.claim(better >= 285,
             {"Learned pooling beats width 1 in most runs.", "在绝大多数实验中，带参数的汇聚优于宽度 1。"},
             fmt::format("{} of 300 runs", better));
  const double first = median(collect([](const BookRun&r) { return r.losses[0]; })),
               last = median(collect([](const BookRun&r) { return r.losses[4]; }));
  page.claim(std::abs(first - 47) < 4.7 && std::abs(last - 18.1) < 1.8,
             {"The summed loss falls from a median of 47 in epoch 1 to 18 in epoch 5.",
              "损失之和的中位数从第 1 轮的 47 降到第 5 轮的 18。"},
             fmt::format("from {:.1f} to {:.1f}", first, last));
  page.draw(
      "runs-w", histogram({{"", w}}, {.label = "|w| after five steps"}, {.label = "runs"}, 15),
      {"What was learned. A rate of 0.5 on a sum of fifty errors makes a huge first step: most runs leap over the best w, about 4, "
       "and land on a plateau where the slope is small.",
       "学到的结果。对五十个误差之和用 0.5 的学习率，第一步非常大：大多数实验跳过了最好的 w（约为 4），落到斜率很小的平台上。"});
}

void stuck_step(Page& page) {
  page.heading({"Starts that never leave", "走不出去的起点"});
  const auto stuck = stuck_seeds();
  std::string list;
  for (uint64_t k : stuck) list += (list.empty() ? "" : ", ") + std::to_string(k);
  page.say(
      {"A few runs end with $w$ near 0, where the fit is the mean: seeds " + list +
           ". The distance enters as $(x - x_i)^2 w^2$, so the slope carries a factor $w$ and is exactly 0 at $w = 0$. Whether the "
           "loss falls or rises from there is a matter of $w^2$:",
       "有几次实验最后 $w$ 接近 0，拟合就是平均值：种子 " + list +
           "。距离以 $(x - x_i)^2 w^2$ 的形式出现，所以斜率带有因子 $w$，在 $w = 0$ 处恰好为 0。从那里损失是降是升，要看 $w^2$ 项："});
  page.formula(
      "L(w) \\approx L(0) - w^2 (2 n \\Cov(x, y)^2 - c), \\quad c = \\frac{1}{n} \\sum_i (y_i - \\bar{y})^2 ((x_i - \\bar{x})^2 + "
      "\\sigma_x^2)");
  page.say(
      {"The first term says that near keys help as far as $y$ has a linear trend in $x$; $c$ is what leaving one out costs, and does not "
       "grow with $n$. But this curve climbs and falls again, its linear trend is almost nil, and in many data sets $c$ wins: then $w = 0$ "
       "is the bottom of a small valley, and a start inside it stays. The way out is to start at a larger $w$, say 1, or to learn $\\log "
       "w$.",
       "第一项说明：只要 $y$ 对 $x$ 有线性趋势，偏重近处的键就有帮助；$c$ 是留一法的代价，不随 $n$ "
       "增长。可是这条曲线先升后降，线性趋势几乎为零，许多数据集上 $c$ 占了上风：这时 $w = 0$ "
       "是一个小山谷的谷底，从谷里出发就留在谷里。办法是从较大的 $w$（例如 1）出发，或者改为学习 $\\log w$。"});
  Vector curvature(book_runs().size());
  parallel_for(static_cast<int64_t>(curvature.size()), 1e8, [&](int64_t k) {
    curvature[static_cast<size_t>(k)] = curvature_at_zero(zh_sample(rng_of(static_cast<uint64_t>(k)).at("zh")));
  });
  const auto steepest =
      std::max_element(stuck.begin(), stuck.end(), [&](uint64_t a, uint64_t b) { return curvature[a] < curvature[b]; });
  const auto usual = static_cast<uint64_t>(std::min_element(curvature.begin(), curvature.end()) - curvature.begin());
  std::vector<Series> lines;
  for (uint64_t k : {*steepest, usual}) {
    const Sample s = zh_sample(rng_of(k).at("zh"));
    Vector w, loss;
    for (int i = -40; i <= 40; ++i)
      w.push_back(i * 0.01), loss.push_back(leave_one_out_loss(s, w.back()) - leave_one_out_loss(s, 0));
    lines.push_back({fmt::format("seed {}", k), w, loss, line_style(lines.empty() ? "-" : "m--")});
  }
  page.draw("stuck-valley", curves(lines, {.label = "w"}, {.label = "L(w) − L(0)", .low = -1, .high = 0.4}),
            {"Leave-one-out loss around w = 0: a valley in one data set, a summit in another.",
             "w = 0 附近的留一法损失：在一份数据上是山谷，在另一份上是山顶。"});

  bool like_average = true;
  double farthest = 0;
  for (uint64_t k : stuck) {
    const BookRun& r = book_runs()[k];
    like_average = like_average && std::abs(r.learned / r.average - 1) < 0.1;
    farthest = std::max(farthest, r.w_start);
  }
  page.claim(stuck.size() >= 3 && stuck.size() <= 20 && like_average,
             {"About one run in forty is stuck, and its fit is no better than the average.",
              "大约四十次里有一次被困住，拟合与平均汇聚一样差。"},
             fmt::format("{} of 300 with |w| < {}; largest start among them {:.3f}", stuck.size(), kStuck, farthest));
  const Sample s = page_sample(page);
  const Learned at_zero = learn_bandwidth(Points::of(s.x), Points::of(s.y), Rng(0), {.start = 0.0});
  page.claim(at_zero.w[0] == 0,
             {"From $w = 0$ exactly, no step ever moves.", "恰好从 $w = 0$ 出发，任何一步都不会移动。"},
             fmt::format("w = {} after five steps", at_zero.w[0]));
  const int64_t valleys = count_above(curvature, 0);
  int64_t foretold = 0;
  for (size_t k = 0; k < curvature.size(); ++k)
    foretold += (curvature[k] > 0) == (predicted_curvature(zh_sample(rng_of(k).at("zh"))) > 0);
  page.claim(foretold >= 285,
             {"The formula foretells from the data alone which it is.", "只凭数据，公式就能预言是哪一种。"},
             fmt::format("{} of 300 runs", foretold));
  page.claim(valleys > 60 && valleys < 240,
             {"$w = 0$ is a valley in a good part of the data sets.", "在相当一部分数据集上 $w = 0$ 是山谷。"},
             fmt::format("{} of 300 runs", valleys));
  Vector restarted(stuck.size());
  for (size_t i = 0; i < stuck.size(); ++i) {
    const Sample data = zh_sample(rng_of(stuck[i]).at("zh"));
    restarted[i] = std::abs(learn_bandwidth(Points::of(data.x), Points::of(data.y), Rng(0), {.start = 1.0}).w[0]);
  }
  page.claim(*std::min_element(restarted.begin(), restarted.end()) > 1,
             {"Started at $w = 1$, every one of the stuck runs learns.", "从 $w = 1$ 出发，被困的实验全都能学起来。"},
             fmt::format("smallest |w| afterwards {:.2f}", *std::min_element(restarted.begin(), restarted.end())));
}

namespace {

/// Mean over the test inputs of the variance of learned and plain predictions when only the noise is drawn anew.
std::pair<double, double> variance_under_noise(uint64_t seed) {
  constexpr int kDraws = 12;
  Sample s = zh_sample(rng_of(seed).at("zh"));
  std::vector<Vector> plain, learned;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const Rng rng = rng_of(seed).at("fresh").at(draw);
    for (size_t i = 0; i < s.x.size(); ++i) s.y[i] = zh_truth(s.x[i]) + 0.5 * rng.normal(i);
    const Learned w = learn_bandwidth(Points::of(s.x), Points::of(s.y), rng, {.start = 0.5});
    plain.push_back(fit(s, 1.0));
    learned.push_back(fit(s, w.bandwidth()[0]));
  }
  const auto variance = [](const std::vector<Vector>& fits) {
    double total = 0;
    for (size_t j = 0; j < fits[0].size(); ++j) {
      Vector at;
      for (const Vector& f : fits) at.push_back(f[j]);
      const double m = mean(at);
      for (double v : at) total += (v - m) * (v - m) / (kDraws - 1) / static_cast<double>(fits[0].size());
    }
    return total;
  };
  return {variance(plain), variance(learned)};
}

void sparse_claim(Page& page) {
  page.say(
      {"**\"The error is larger on [0, 1] and [3, 4] because there are fewer data.\"** A natural thought in front of one figure. Over 300 "
       "runs the density is the same everywhere on average, and the errors are still unequal: the cause is smoothing. A mean over a window "
       "of width 1 fills valleys and cuts peaks, and at the left end all neighbours lie on one side, uphill.",
       "**“[0, 1] 和 [3, 4] 之间数据少，所以误差大。”** 只看一幅图，很容易这样想。但在 300 次实验中，各处的平均密度相同，误差却仍然不同：原"
       "因是平滑。宽度为 1 的窗口取平均会填谷削峰；在左端，所有邻居都在同一侧，都在上坡方向。"});
  Vector bias(50), size(50), per_unit(5);
  for (const BookRun& r : book_runs())
    for (size_t i = 0; i < 50; ++i) {
      bias[i] += r.error_plain[i] / 300;
      per_unit[i / 10] += std::abs(r.error_plain[i]) / 3000;
    }
  Figure figure;
  figure.cols = 2;
  figure.panels = {{.content = Bars{.categories = {"[0,1)", "[1,2)", "[2,3)", "[3,4)", "[4,5)"},
                                    .series = {{"", per_unit}},
                                    .bar_values = true},
                    .x = {.label = "x"},
                    .y = {.label = "mean |error|"}},
                   {.content = Curves{{{"", test_x(), bias, line_style("-")}, {"", {0, 5}, {0, 0}, line_style("k:")}}},
                    .x = {.label = "x", .low = 0, .high = 5},
                    .y = {.label = "mean error (bias)"}}};
  page.draw("notes-error", figure,
            {"Width 1 over 300 runs: size of the error by interval, and its mean, which no amount of luck removes.",
             "宽度 1 的 300 次实验：各区间误差的大小，以及误差的均值——它与运气无关。"});
  page.claim(
      std::abs(bias[0] - 1.97) < 0.1 && std::abs(bias[20] + 0.69) < 0.1,
      {"The error is bias: far too high at 0, too low at the peak.", "误差来自偏差：在 0 处高出很多，在峰处偏低。"},
      fmt::format("{:+.2f} at x = 0, {:+.2f} at x = 2", bias[0], bias[20]));
  page.claim(std::min_element(per_unit.begin(), per_unit.end()) == per_unit.begin() + 3,
             {"On [3, 4] the error is the smallest of all, not large.", "[3, 4] 上的误差不但不大，反而最小。"},
             fmt::format("mean |error| by unit interval: {:.2f}, {:.2f}, {:.2f}, {:.2f}, {:.2f}", per_unit[0],
                         per_unit[1], per_unit[2], per_unit[3], per_unit[4]));
  const Vector link = collect([](const BookRun& r) { return r.error_with_density; });
  page.claim(median(link) > -0.5 && count_above(link, 0) >= 45,
             {"Density explains little: its correlation with |error| is weak, and often of the wrong sign.",
              "密度解释不了多少：它与误差大小的相关很弱，而且常常连符号都不对。"},
             fmt::format("median {:.2f}, positive in {} of 300", median(link), count_above(link, 0)));
}

}  // namespace

void notes_step(Page& page) {
  page.heading({"Three observations from the notes, checked", "检验笔记里的三个观察"});
  sparse_claim(page);
  page.say(
      {"**\"The learned fit is less smooth, fits better, and is sensitive to noise.\"** Right, all three. Sensitivity means: keep the "
       "inputs, draw only the noise anew, learn again, and see how far the curve moves.",
       "**“学到的拟合不够平滑，拟合得更好，对噪声敏感。”** 三点都对。所谓敏感：保持输入不变，只重新抽取噪声，再学一次，看曲线移动多少。"});
  Vector plain(40), learned(40);
  parallel_for(40, 1e9, [&](int64_t k) {
    std::tie(plain[static_cast<size_t>(k)], learned[static_cast<size_t>(k)]) =
        variance_under_noise(static_cast<uint64_t>(k));
  });
  page.claim(
      mean(learned) > 10 * mean(plain),
      {"Fresh noise moves the learned curve more than ten times as much.", "换一批噪声，学到的曲线的变动大十倍以上。"},
      fmt::format("variance {:.3f} learned, {:.4f} at width 1", mean(learned), mean(plain)));
  const int64_t rougher = count_above(collect([](const BookRun& r) { return r.rough_learned - r.rough_plain; }), 0);
  const int64_t sharper = count_above(collect([](const BookRun& r) { return r.keys_plain - r.keys_learned; }), 0);
  page.claim(
      rougher >= 280 && sharper >= 280,
      {"It is less smooth, and its weights sharper, in nearly all runs.", "几乎所有实验里，它更不平滑，权重更集中。"},
      fmt::format("rougher in {}, sharper in {} of 300", rougher, sharper));
  page.say(
      {"**\"Weights concentrate where data are sparse and spread where they are dense.\"** Right: with a fixed width, more keys share the "
       "weight where more are near. The effective number of keys is $e^H$, $H$ the entropy of a query's weights.",
       "**“数据稀疏处权重集中，稠密处权重分散。”** 对：宽度固定时，附近的键越多，分享权重的键就越多。有效键数是 $e^H$，$H$ "
       "是一个查询的权重的熵。"});
  const Vector keys = collect([](const BookRun& r) { return r.keys_with_density; });
  page.draw(
      "notes-density",
      histogram({{"effective keys", keys}, {"|error|", collect([](const BookRun& r) { return r.error_with_density; })}},
                {.label = "correlation with the density of the data"}, {.label = "runs"}, 20),
      {"Over 300 runs: the density says how widely the learned weights spread, and hardly how wrong the width-1 fit is.",
       "300 次实验：密度决定学到的权重有多分散，却几乎说明不了宽度 1 的拟合有多错。"});
  page.claim(median(keys) > 0.5 && count_above(keys, 0) >= 275,
             {"Effective keys and density go together.", "有效键数与密度同升同降。"},
             fmt::format("median correlation {:.2f}, positive in {} of 300", median(keys), count_above(keys, 0)));
}

}  // namespace qkv::labs::regression
