// Lab 10.2, the Chinese edition's experiment: average, non-parametric and learned pooling on the page's own data.
#include <fmt/format.h>

#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/both.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::regression {

void average_step(Page& page) {
  page.heading({"The data, and average pooling", "数据与平均汇聚"});
  page.say(
      {"Fifty inputs are drawn uniformly from (0, 5) and sorted; the outputs carry normal noise of **standard deviation** 0.5 (a variance "
       "of 0.25: what N(0, 0.5) means in code). The test inputs are 0, 0.1, ..., 4.9, and the truth there is free of noise.",
       "从 (0, 5) 均匀抽取五十个输入并排序；输出带有**标准差**为 0.5 的正态噪声（方差 0.25，代码里的 N(0, 0.5) 就是这个意思）。测试输入是 "
       "0、0.1、…、4.9，那里的真实值没有噪声。"});
  page.formula("y_i = 2 \\sin(x_i) + x_i^{0.8} + \\epsilon");
  const Sample s = page_sample(page);
  Vector squares;
  for (uint64_t k = 0; k < 100; ++k) {
    const Sample other = zh_sample(rng_of(k).at("zh"));
    squares.push_back(mean_square_difference(other.y, values(zh_truth, other.x)));
  }
  page.fact({"The standard deviation of the noise, over 100 data sets.", "在 100 份数据上噪声的标准差。"},
            rounded(std::sqrt(mean(squares)), 4));
  page.say({"The simplest pooling gives every value the same weight, whatever is asked: a horizontal line.",
            "最简单的汇聚不管查询是什么，给每个值相同的权重：得到一条水平线。"});
  const Vector flat = fit(s, {.estimator = Estimator::average});
  page.draw(
      "average-fit", fit_figure(s, flat),
      {"Average pooling does not look at the query. Here and in all figures of this lab the truth is solid and the estimate dashed.",
       "平均汇聚不看查询。在本实验的所有图中，真实曲线为实线，估计为虚线。"});
  const Attended constant = attend(Constant{}, column(test_x()), column(s.x), column(s.y));
  double worst = 0;
  for (size_t i = 0; i < flat.size(); ++i)
    worst = std::max({worst, std::abs(flat[i] - mean(s.y)), std::abs(constant.output.ptr()[i] - mean(s.y))});
  page.claim(worst < 1e-5,
             {"Attention with a constant score is the mean of the values for every query.",
              "分数为常数的注意力，对每个查询都等于值的平均。"},
             fmt::format("mean {:.3f}, largest difference {}", mean(s.y), tiny(worst)));
}

void plain_step(Page& page) {
  page.heading({"Non-parametric attention pooling", "非参数注意力汇聚"});
  page.say(
      {"Nadaraya and Watson weigh a value by how near its key is to the query. With a Gaussian kernel of width 1 the weights are a softmax "
       "of minus half the squared distance; the factor $1/\\sqrt{2\\pi}$ of the density cancels. There is nothing to train.",
       "Nadaraya 和 Watson 按键与查询的远近给值加权。用宽度为 1 的高斯核时，权重就是负的半个平方距离的 softmax；密度里的因子 "
       "$1/\\sqrt{2\\pi}$ 被约掉。这里没有要训练的东西。"});
  page.formula(
      "f(x) = \\sum_{i=1}^n \\frac{K(x - x_i)}{\\sum_{j=1}^n K(x - x_j)} y_i = \\sum_{i=1}^n \\softmax_i(-\\frac{1}{2} (x - x_i)^2) y_i");
  const Sample s = page_sample(page);
  const KernelRegression plain = model(s);
  const Vector curve = plain.predict(Points::of(test_x())).values.values;
  page.draw(
      "plain-fit", fit_figure(s, curve),
      {"Smooth and nearer to the truth than the mean, but flattened: the peak is too low and the left end far too high.",
       "曲线光滑，比平均值更接近真实曲线，但被压平了：峰太低，左端明显太高。"});
  page.draw("plain-weights", weights_figure(plain.weights(Points::of(test_x()))),
            {"One row per query: the nearer a key, the larger its weight. Width 1 makes a broad band.",
             "每行是一个查询：键越近，权重越大。宽度 1 形成一条宽带。"});
  const Attended shifted =
      attend(Gaussian{}, column(test_x()), column(s.x), column(s.y), Mask::bias(full({1, 50}, -0.9189385f)));
  double worst = 0;
  for (size_t i = 0; i < curve.size(); ++i) worst = std::max(worst, std::abs(shifted.output.ptr()[i] - curve[i]));
  page.claim(
      worst < 1e-5,
      {"Multiplying the kernel by $1/\\sqrt{2\\pi}$ changes nothing.", "给核乘上 $1/\\sqrt{2\\pi}$ 不改变任何结果。"},
      "largest difference " + tiny(worst));

  const Vector at_training = plain.predict(Points::of(s.x)).values.values;
  page.say(both(
      "One of the book's four code listings asks at the training inputs and draws the answers over the test inputs. It looks "
      "much the same and is not: its error here is {:.3f} in place of {:.3f}, because answer number i belongs to another x.",
      "书中四份代码里有一份把训练输入当作查询，却把答案画在测试输入上。图看上去差不多，其实不对：这里的误差是 {:.3f} 而不是 "
      "{:.3f}，因为第 i 个答案属于另一个 x。",
      zh_error(at_training), zh_error(curve)));
}

namespace {

/// dL/dw of the leave-one-out loss, by attention on the tape: the diagonal is masked, nothing is tiled.
double taped_slope(const Sample& s, double w) {
  const Tensor width = parameter(scalar(static_cast<float>(w)));
  Tape tape;
  const Attended pool =
      attend(Gaussian{width}, column(s.x), column(s.x), column(s.y), Mask::drop(eye(static_cast<int64_t>(s.x.size()))));
  tape.backward(squared_error(pool.output, column(s.y), Reduction::sum));
  return tape.grad(width).item();
}

}  // namespace

void learned_step(Page& page) {
  page.heading({"Learned attention pooling", "带参数的注意力汇聚"});
  page.say(
      {"One parameter: the distance is multiplied by $w$ before it is squared, so $1/|w|$ is the width of the kernel.",
       "只有一个参数：距离先乘以 $w$ 再平方，所以 $1/|w|$ 就是核的宽度。"});
  page.formula("f(x) = \\sum_{i=1}^n \\softmax_i(-\\frac{1}{2} ((x - x_i) w)^2) y_i");
  page.say(
      {"It is trained leave-one-out: each point is predicted from the 49 others, the squared errors are summed, and five steps of gradient "
       "descent with rate 0.5 follow, from a random start between 0 and 1.",
       "训练用留一法：每个点由其余 49 个点来预测，把平方误差相加，从 0 到 1 之间的随机起点出发，以学习率 0.5 做五步梯度下降。"});
  const Sample s = page_sample(page);
  const Learned learned = page_learned(page);
  std::string log = fmt::format("w = {:.4f}\n", learned.start[0]);
  Vector epochs;
  for (size_t e = 0; e < learned.losses.size(); ++e) {
    log += fmt::format("epoch {}, loss {:.6f}\n", e + 1, learned.losses[e]);
    epochs.push_back(static_cast<double>(e + 1));
  }
  page.print(log + fmt::format("w = {:.4f}", learned.w[0]));
  page.draw(
      "learned-loss",
      curves({{"", epochs, learned.losses, line_style("bo-")}}, {.label = "epoch", .low = 0.9, .high = 5.1},
             {.label = "loss"}),
      {"Summed squared leave-one-out error before each of the five steps.", "五步中每一步之前的留一法平方误差之和。"});
  const KernelRegression sharp = model(s, {.bandwidth = learned.bandwidth()});
  const Vector curve = sharp.predict(Points::of(test_x())).values.values, plain = fit(s, 1.0);
  page.draw("learned-fit", fit_figure(s, curve),
            {"The learned fit follows the data closely, their noise too.", "学到的拟合紧跟数据，也紧跟数据里的噪声。"});
  const Tensor both = stack({model(s).weights(Points::of(test_x())), sharp.weights(Points::of(test_x()))});
  Figure maps = weights_figure(both, {"width 1", fmt::format("learned, width {:.3f}", 1 / std::abs(learned.w[0]))});
  maps.colours.per_panel = true;
  page.draw(
      "learned-weights", maps,
      {"The band before and after learning; each map has its own scale.", "学习前后的权重带；两幅图各用自己的色标。"});
  if (std::abs(learned.w[0]) < 0.5)
    page.say(
        {"This seed is one of the few whose start lies in the trap around $w = 0$ (see below): nothing was learned. Another `--seed` shows "
         "the usual picture.",
         "这个种子恰好是少数起点落在 $w = 0$ 附近陷阱里的情况（见下文）：什么也没有学到。换一个 `--seed` 就能看到通常的图。"});
  named_table(
      page,
      {{"pooling", "汇聚方式"}, {"test error", "测试误差"}, {"effective keys", "有效键数"}, {"roughness", "粗糙度"}},
      {{{"average", "平均"}, {rounded(zh_error(Vector(50, mean(s.y))), 3), "50.0", "0.0000"}},
       {{"width 1", "宽度 1"},
        {rounded(zh_error(plain), 3), rounded(mean(model(s).effective_keys(Points::of(test_x()))), 1),
         rounded(roughness(plain), 4)}},
       {{"learned", "学习"},
        {rounded(zh_error(curve), 3), rounded(mean(sharp.effective_keys(Points::of(test_x()))), 1),
         rounded(roughness(curve), 4)}}});
  const double w = learned.start[0],
               exact = (w - learn_bandwidth(Points::of(s.x), Points::of(s.y), Rng(0), {.epochs = 1, .start = w}).w[0]) /
                       0.5,
               taped = taped_slope(s, w);
  page.claim(std::abs(exact - taped) < 2e-3 * (1 + std::abs(exact)),
             {"The first step's slope by hand, and by `attend` on the tape with the diagonal masked, are the same.",
              "第一步的斜率，手工推导的与用记录带上掩蔽对角线的 `attend` 求得的一致。"},
             fmt::format("{:.4f} by hand, {:.4f} on the tape", exact, taped));
}

}  // namespace qkv::labs::regression
