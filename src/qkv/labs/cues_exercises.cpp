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
  page.heading({"Exercise 10.1.1: cues in translation", "练习 10.1.1：翻译中的提示"});
  page.say(
      {"A decoder that writes a translation word by word has a task at every step: the next word. Its state is the **query**, the "
       "volitional cue. Each source word announces what it has to offer; that is its **key**, the nonvolitional cue. What the decoder "
       "takes in is the word's meaning, the encoder's state: the **value**, the sensory input. In section 10.4 keys and values are the "
       "same states. Here is the idea with features made by hand (who, action, article, thing, property). The French noun comes before its "
       "adjective, so the weights cross, and \"j'ai\" needs two words at once.",
       "逐词写译文的解码器在每一步都有任务：下一个词。它的状态就是**查询**，即自主性提示。每个源词宣告自己能提供什么，这是它的**键**，即非"
       "自主性提示。解码器取入的是词的含义，即编码器的状态：这是**值**，即感官输入。在 10.4 节中，键和值是同样的状态。下面用手工特征（谁、"
       "动作、冠词、事物、性质）演示这个想法。法语的名词在形容词之前，所以权重会交叉；而 \"j'ai\" 同时需要两个词。"});
  const std::vector<std::string> source = {"i", "have", "a", "red", "car"},
                                 target = {"j'ai", "une", "voiture", "rouge"};
  // who, action, article, thing, property
  const Tensor k({5, 5}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0});
  const Tensor q({4, 5}, {5, 5, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 5});
  const Attended a = attend(Dot{}, q, k, k);
  Figure figure =
      heatmaps(a.weights.matrix(), "source (keys)", "target (queries)", {},
               {.colours = {.low = 0, .high = 1}, .x_tokens = source, .y_tokens = target, .cell_values = true});
  std::get<HeatMap>(figure.panels[0].content).boxes = {{0, 0}, {0, 1}, {1, 2}, {2, 4}, {3, 3}};
  page.draw("translation-cues", figure,
            {"Each French word asks, the English words answer. Frames mark the words that truly correspond.",
             "每个法语词提问，英语词作答。方框标出真正对应的词。"});
  const Tensor w = a.weights.matrix();
  const double two = w.ptr()[0] + w.ptr()[1], cross = std::min(w.ptr()[2 * 5 + 4], w.ptr()[3 * 5 + 3]);
  page.claim(two > 0.95 && std::abs(w.ptr()[0] - w.ptr()[1]) < 1e-6 && cross > 0.95,
             {"One query may share its weight between two keys, and the order of the words does not matter.",
              "一个查询可以把权重分给两个键，而且词序无关紧要。"},
             fmt::format("α(j'ai, i) + α(j'ai, have) = {:.3f}; α(voiture, car) and α(rouge, red) at least {:.3f}", two,
                         cross));
}

void covariance(Page& page) {
  page.heading(
      {"The gradient is a covariance (exercise 11.1.2, English edition)", "梯度就是协方差（英文版练习 11.1.2）"});
  page.say(
      {"Let the score be $q^\\top k_i$ and the values the keys themselves. With $p_i$ the weights and $\\bar{k} = \\sum_i p_i k_i$ the "
       "output, the derivative of a softmax weight is $p_i (k_i - \\bar{k})$, and so",
       "设评分为 $q^\\top k_i$，值就是键本身。记权重为 $p_i$，输出为 $\\bar{k} = \\sum_i p_i k_i$，则 softmax 权重的导数是 $p_i (k_i - "
       "\\bar{k})$，于是"});
  page.formula(
      "\\nabla_q \\sum_i p_i k_i = \\sum_i p_i k_i (k_i - \\bar{k})^\\top = \\sum_i p_i k_i k_i^\\top - \\bar{k} \\bar{k}^\\top = "
      "\\mathrm{Cov}_p[k]");
  page.say(
      {"The tape gives the left side a row at a time, by running backward from each element of the output; the right side is computed in "
       "double from the weights.",
       "记录带从输出的每个元素反向运行，逐行给出左边；右边用权重以双精度计算。"});
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
        mean_i += static_cast<double>(p.ptr()[n]) * k.at({n, i}),
            mean_j += static_cast<double>(p.ptr()[n]) * k.at({n, j});
      }
      both.mutable_ptr()[(d + i) * d + j] = static_cast<float>(product - mean_i * mean_j);
    }
  const double off = largest_difference(both.part(0, {d, d}), both.part(d * d, {d, d}));
  page.draw(
      "covariance", heatmaps(both, "j", "i", {"gradient by the tape", "covariance of the keys"}),
      {"The Jacobian of the output with respect to the query, and the covariance of the keys under the weights: one matrix.",
       "输出对查询的雅可比矩阵，与键在权重分布下的协方差：是同一个矩阵。"});
  page.claim(off < 1e-5, {"The tape's gradient is the covariance.", "记录带给出的梯度就是协方差。"},
             "largest difference " + tiny(off));

  page.say(
      {"So a query learns only where it hesitates: with all the weight on one key the covariance is 0. Make a hundred random queries a "
       "thousand times as long, and for nearly all of them the gradient is gone (but not where two keys happen to be tied); that is why "
       "section 10.3 divides the score.",
       "所以查询只在犹豫时才学习：全部权重落在一个键上时，协方差为 0。把一百个随机查询放大一千倍，几乎所有查询的梯度都消失了（除非恰有两个键不相上下）；"
       "这正是 10.3 节要把分数除小的原因。"});
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
  // Less than a thousandth, not 0: what is left is the rounding of sums that cancel.
  const auto gone = std::count_if(far.begin(), far.end(), [&](double g) { return g < 1e-3 * median; });
  page.claim(
      gone >= 90, {"A saturated softmax passes no gradient to its query.", "饱和的 softmax 不向查询传递梯度。"},
      fmt::format(
          "median gradient {:.2f}; of the queries a thousand times as long {} of {} have less than a thousandth of it",
          median, gone, queries));
}

namespace {

struct Engine {
  Tensor documents;         // (60, 8), all of one length
  std::vector<int> column;  // the searcher's word j means feature column[j] ...
  std::vector<float> sign;  // ... with this sign

  explicit Engine(const Rng& rng) : documents(normal({60, 8}, rng.at("documents"))), column(8), sign(8) {
    for (int64_t i = 0; i < 60; ++i) {
      const double length = length_of(documents.part(i * 8, {8}));
      for (int64_t f = 0; f < 8; ++f) documents.mutable_ptr()[i * 8 + f] *= static_cast<float>(std::sqrt(8.0) / length);
    }
    for (int j = 0; j < 8; ++j)
      column[static_cast<size_t>(j)] = j,
      sign[static_cast<size_t>(j)] = rng.at("sign").uniform(static_cast<uint64_t>(j)) < 0.5f ? -1.0f : 1.0f;
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
  page.heading(
      {"A differentiable search engine (exercise 11.1.3, English edition)", "可微的搜索引擎（英文版练习 11.1.3）"});
  page.say(
      {"Documents are key-value pairs, a search is a query, and the ranking is the order of the attention weights. Hard ranking has no "
       "gradient; a softmax over the scores has, so every click teaches: minimise $-\\log \\alpha(q, k_{\\mathrm{clicked}})$ over the "
       "parameters of the score. For a large library one would score only the best candidates of an index, and the page shown is their top "
       "few. In the toy below 60 documents have 8 features, searchers use other words (the features permuted, some negated, plus noise), "
       "and $W$ in $q^\\top W k$ learns the dictionary from clicks on 45 documents. It is then tested on the 15 that nobody ever clicked.",
       "文档是键值对，搜索是查询，排名就是注意力权重的次序。硬排名没有梯度，而对分数做 softmax 就有，于是每次点击都能教它：对评分的参数最小"
       "化 $-\\log \\alpha(q, k_{\\mathrm{clicked}})$。文库很大时，只对索引给出的候选评分，显示的页面就是其中最靠前的几个。下面的小例子里，"
       "60 篇文档各有 8 个特征，搜索者使用另一套词（特征被打乱、部分变号、加上噪声），$q^\\top W k$ 中的 $W$ 从对 45 篇文档的点击中学会这部"
       "词典，然后用从未被点击过的 15 篇来检验。"});
  const Rng rng = Rng(page.seed()).at("search");
  const Engine engine(rng);
  std::vector<int32_t> clicked, fresh;
  for (int32_t i = 0; i < 180; ++i) clicked.push_back(i % 45);
  for (int32_t i = 0; i < 150; ++i) fresh.push_back(45 + i % 15);
  const Tensor train_q = engine.ask(clicked, rng.at("train")), test_q = engine.ask(fresh, rng.at("test"));
  const Ids targets({180}, clicked);
  const Tensor w = parameter(zeros({8, 8}));
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
    steps.push_back(step), loss.push_back(l.item());
  }
  Figure figure;
  figure.cols = 2;
  figure.panels = {{Curves{{{"", steps, loss}}}, "clicks seen", {.label = "step"}, {.label = "−log weight", .low = 0}},
                   {Curves{{{"", steps, recall}}},
                    "documents never clicked",
                    {.label = "step"},
                    {.label = "found first", .low = 0, .high = 1.02}}};
  page.draw(
      "search-engine", figure,
      {"Left the loss on the clicks, right the share of fresh searches whose document, never clicked in training, ranks first.",
       "左：点击上的损失；右：新搜索中目标文档（训练中从未被点击）排在第一的比例。"});
  const Attended top = attend(Bilinear{w.detached()}, test_q, engine.documents, engine.documents);
  const auto best = top.weights.top_k(0, 0, 0, 3);
  std::vector<std::string> shelf = {std::to_string(fresh[0])};
  for (const KeyWeight& b : best) shelf.push_back(fmt::format("{} ({:.3f})", b.key, b.weight));
  page.table(
      {{"document wanted", "要找的文档"}, {"first (weight)", "第一（权重）"}, {"second", "第二"}, {"third", "第三"}},
      {shelf});
  page.claim(
      recall.front() == 0 && recall.back() > 0.7,
      {"What clicks taught carries over to documents without any.", "从点击学到的东西，能推广到没有任何点击的文档。"},
      fmt::format("found first: {:.0f} % before training, {:.0f} % after; by chance 1.7 %", 100 * recall.front(),
                  100 * recall.back()));
}

void squeeze_and_excitation(Page& page) {
  page.heading({"Squeeze-and-excitation as attention (exercise 11.1.4, English edition)",
                "把 squeeze-and-excitation 看作注意力（英文版练习 11.1.4）"});
  page.say(
      {"A squeeze-and-excitation block averages each channel of an image, puts the averages through a small network, and multiplies each "
       "channel by a gate between 0 and 1. Both halves are attention. The squeeze is a constant score over the pixels. A gate $\\sigma(e) "
       "= \\exp(e) / (\\exp(e) + 1)$ is a softmax over two keys, \"take the channel\" and \"take nothing\", with values $x_c$ and 0; the "
       "query is what the network made of the whole image. As channels do not compete, the gates need not sum to one: this is the cone, "
       "not the convex hull.",
       "squeeze-and-excitation 模块对图像的每个通道求平均，把这些平均值送入一个小网络，再用 0 到 1 之间的门乘以每个通道。两半都是注意力。"
       "squeeze 是对像素的常数评分。门 $\\sigma(e) = \\exp(e) / (\\exp(e) + 1)$ 是对两个键（“取这个通道”与“什么也不取”）的 softmax，值为 "
       "$x_c$ 和 0；查询是网络从整幅图像得出的结果。通道之间并不竞争，所以各个门之和不必为一：这是锥，而不是凸包。"});
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
    k.mutable_ptr()[2 * c] = 1, k.mutable_ptr()[2 * c + 1] = 0;
    std::copy_n(x.ptr() + c * pixels, pixels, v.mutable_ptr() + c * 2 * pixels);
  }
  const Attended gated = attend(Dot{}, excitation.viewed({channels, 1, 1}), k, v);
  const double off = largest_difference(gated.output.viewed({channels, pixels}), direct);
  std::vector<std::string> names;
  for (int64_t c = 0; c < channels; ++c) names.push_back(std::to_string(c));
  double total = 0;
  for (float g : gates.data()) total += g;
  page.draw(
      "squeeze-excitation",
      bars(names, {{"gates (two keys each)", numbers(gates)}, {"softmax over channels", numbers(softmax(excitation))}},
           {.label = "channel"}, {.label = "weight", .low = 0, .high = 1}),
      {"Gates open independently; a softmax over the channels would make them share a weight of 1.",
       "各个门独立开合；若对通道做 softmax，它们就得共分总和为 1 的权重。"});
  page.claim(
      off < 1e-5,
      {"The block and the attention over \"take\" and \"leave\" agree.", "该模块与在“取”和“舍”上的注意力结果一致。"},
      fmt::format("largest difference {}; the gates sum to {:.2f}", tiny(off), total));
}

}  // namespace qkv::labs::cues
