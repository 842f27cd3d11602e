// Lab 10.1: cues. What a query, a key and a value are, on a desk with five things.
#include "qkv/labs/cues.h"
#include "qkv/labs/both.h"

#include <fmt/format.h>

#include <algorithm>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs {
namespace cues {
namespace {

const std::vector<std::string> kThings = {"newspaper", "report", "red cup", "notebook", "book"};
constexpr int kCup = 2, kBook = 4;

// What each thing offers, (5, 4): how vivid it looks, and how good it is to drink from, to read, to write on.
Tensor offers() {
  return Tensor({5, 4}, {0.1f, 0,    0.5f, 0.1f, 0.1f, 0,    0.4f, 0.2f, 1.0f, 1,
                         0.0f, 0.0f, 0.2f, 0,    0.2f, 1.0f, 0.3f, 0,    1.0f, 0.1f});
}

// Where it lies on the desk, in decimetres, (5, 2).
Tensor places() { return Tensor({5, 2}, {1, 5, 2, 2, 5, 4, 7, 6, 8, 1}); }

// Wanting to drink, wanting to read: (2, 4).
Tensor tasks(float strength) { return Tensor({2, 4}, {0, strength, 0, 0, 0, 0, strength, 0}); }

std::vector<double> weights_of(const Attended& attended, int64_t query) {
  return numbers(attended.weights.row(0, 0, query));
}

std::string place(const Tensor& output, int64_t query) {
  return fmt::format("({:.2f}, {:.2f})", output.at({query, 0}), output.at({query, 1}));
}

std::vector<std::string> pooling_row(const std::string& name, const Attended& a, int64_t query) {
  std::vector<std::string> row = {name};
  for (double w : weights_of(a, query)) row.push_back(rounded(w, 3));
  row.push_back(place(a.output, query));
  return row;
}

bool same_rows(const Tensor& x) {
  const int64_t n = x.size(-1);
  return std::equal(x.ptr(), x.ptr() + n, x.ptr() + n);
}

}  // namespace

void words(Page& page) {
  page.heading({"The words", "术语"});
  page.say(
      {"An eye sends its brain some hundred million bits per second, far more than can be looked into; attention is the choice. Two "
       "kinds of cue make it. A **nonvolitional cue** lies in the thing: a red cup among grey papers catches the eye by itself. A "
       "**volitional cue** lies in the task: whoever wants to read finds the book although the cup is redder. (Note 000 has one colour picture among black-and-white ones: it catches the eye, until one is "
       "told to look at the black-and-white ones.) Models took over both, "
       "under other names. What a thing shows of itself is its key, what the task asks is the query, what is taken in is the value.",
       "眼睛每秒送给大脑约一亿比特，远多于能细看的量；注意力就是取舍。左右取舍的提示有两种。**非自主性提示**在事物身上：灰纸堆里的红杯子自"
       "己就会抓住目光。**自主性提示**在任务之中：想读书的人会找到书，尽管杯子更红。（笔记 000 的例子：许多黑白图片中有一张彩色的，它会抓住"
       "目光，除非任务是去看黑白的。）模型沿用了这两者，只是换了名字：事物自己显示的是键，任务所问的是查询，被取入的是值。"});
  page.table({{"Chinese (the notes use several)", "中文（笔记中有几种说法）"}, {"English", "英文"}, {"symbol", "符号"}},
             {{"自主性提示 / 注意力线索 / 意志提示，查询", "volitional cue, query", "$q$"},
              {"非自主性提示 / 非注意力线索，键", "nonvolitional cue, key", "$k$"},
              {"感官输入，值", "sensory input, value", "$v$"},
              {"注意力汇聚 / 注意力池化", "attention pooling", "$f$"},
              {"注意力评分函数 / 注意力分数", "scoring function, attention score", "$a$"},
              {"注意力权重", "attention weight", "$\\alpha$"},
              {"掩蔽 softmax / 遮蔽 softmax，有效长度", "masked softmax, valid length", "—"},
              {"加性注意力，缩放点积注意力，多头注意力，自注意力",
               "additive, scaled dot-product, multi-head attention, self-attention", "—"},
              {"位置编码，残差连接，层规范化", "positional encoding, residual connection, layer normalisation", "—"}});
  page.say(
      {"In symbols: the weights come from comparing the query with every key, and the output is the weighted mean of the values.",
       "写成式子：用查询与每个键比较得到权重，输出是各个值的加权平均。"});
  page.formula(
      "f(q) = \\sum_{i=1}^{m} \\alpha(q, k_i) v_i, \\quad \\alpha(q, k_i) = \\frac{\\exp(a(q, k_i))}{\\sum_{j=1}^{m} \\exp(a(q, k_j))}");
}

void desk(Page& page) {
  page.heading({"A desk with five things", "桌上的五样东西"});
  page.say(
      {"The picture with the cup and the book can be computed. Five things lie on a desk. The key of each has four features: how vivid "
       "it looks, and how good it is to drink from, to read and to write on. The value is the place where it lies, so the output of the "
       "pooling is the point that the eye goes to.",
       "杯子与书的那幅图可以算出来。桌上有五样东西，每样东西的键有四个特征：看起来多鲜艳，以及多适合喝、读、写。值是它所在的位置，于是汇聚"
       "的输出就是目光落下的点。"});
  const Tensor k = offers(), v = places();
  std::vector<std::vector<Text>> rows;
  const std::vector<std::string> chinese = {"报纸", "报告", "红杯子", "笔记本", "书"};
  for (int64_t i = 0; i < 5; ++i) {
    rows.push_back({{kThings[static_cast<size_t>(i)], chinese[static_cast<size_t>(i)]}});
    for (int64_t f = 0; f < 4; ++f) rows.back().push_back(both("{:.1f}", "{:.1f}", k.at({i, f})));
    rows.back().push_back({place(v, i), place(v, i)});
  }
  page.word_table({{"thing", "东西"},
                   {"vivid", "鲜艳"},
                   {"to drink", "喝"},
                   {"to read", "读"},
                   {"to write on", "写"},
                   {"place (value)", "位置（值）"}},
                  rows);

  page.say(
      {"Without a query there are only the things. Average pooling weighs all alike. A score of the key alone, $a(k) = w^\\top k$ with a "
       "$w$ that looks at vividness, goes to the cup; divided by a small temperature it takes the largest and nothing else: a hard choice, a "
       "cousin of max pooling (which takes the maximum of every feature by itself, not one thing as a whole). Fully connected and "
       "convolutional layers are of this kind too: what a filter answers to lies in the picture, and nobody asks. Then two queries, a wish to drink and a wish to read, scored by the dot product $q^\\top k$:",
       "没有查询时，只有事物本身。平均汇聚对一切一视同仁。只看键的评分 $a(k) = w^\\top k$（$w$ 只看鲜艳程度）会落到杯子上；再除以很小的温"
       "度，就只取最大的一个：这是硬性的选择，与最大汇聚相近（最大汇聚对每个特征分别取最大值，而不是整个地取一样东西）。全连接层和卷积层也"
       "属于这一类：卷积核对什么作出反应，全在图像之中，没有人提问。然后是两个查询，想喝和想读，用点积 $q^\\top k$ 评分："});
  const Tensor q = tasks(8), vivid({4}, {5, 0, 0, 0});
  const Attended average = attend(Constant{}, q, k, v), salient = attend(Salience{vivid}, q, k, v);
  const Attended largest = attend(Salience{vivid, 0.01f}, q, k, v), asked = attend(Dot{}, q, k, v);
  page.table({{"pooling", "汇聚"},
              {"newspaper", "报纸"},
              {"report", "报告"},
              {"red cup", "红杯子"},
              {"notebook", "笔记本"},
              {"book", "书"},
              {"$f$", "$f$"}},
             {pooling_row("$a = 0$", average, 0), pooling_row("$a = w^\\top k$", salient, 0),
              pooling_row("$a = w^\\top k / 0.01$", largest, 0), pooling_row("$a = q_1^\\top k$", asked, 0),
              pooling_row("$a = q_2^\\top k$", asked, 1)});
  page.draw("desk-weights",
            bars(kThings,
                 {{"no query: salience", weights_of(salient, 0)},
                  {"query: drink", weights_of(asked, 0)},
                  {"query: read", weights_of(asked, 1)}},
                 {}, {.label = "attention weight", .low = 0, .high = 1}),
            {"The cup wins when nobody asks and when one is thirsty; whoever wants to read looks at the book.",
             "没有人提问时杯子取胜，口渴时也是；想读书的人则看向书。"});
  double spread = 0;
  for (double w : weights_of(average, 0)) spread = std::max(spread, std::abs(w - 0.2));
  page.claim(spread < 1e-7,
             {"Average pooling is attention with a constant score: every weight is 1/5.",
              "平均汇聚就是评分为常数的注意力：每个权重都是 1/5。"},
             "largest |α − 1/5| " + tiny(spread));
  page.claim(same_rows(average.output) && same_rows(salient.output) && same_rows(largest.output),
             {"Average pooling, salience and the hard choice give the same bits whatever the task.",
              "无论任务是什么，平均汇聚、显著性和硬性选择给出的结果逐位相同。"},
             "f(q₁) = f(q₂) for all three");
  const double cup = salient.weights.row(0, 0, 0).at({kCup}), only = largest.weights.row(0, 0, 0).at({kCup});
  page.claim(cup > 0.9 && only == 1,
             {"The vivid cup draws the eye; in the limit of a small temperature it gets all the weight.",
              "鲜艳的杯子吸引目光；温度趋于零时它得到全部权重。"},
             fmt::format("weight of the cup {:.3f}, at temperature 0.01 {:.3f}", cup, only));
  const double drink = asked.weights.row(0, 0, 0).at({kCup}), read = asked.weights.row(0, 0, 1).at({kBook});
  page.claim(drink > 0.95 && read > 0.95,
             {"A query moves the weight: to the cup for the thirsty, to the book for the reader.",
              "查询移动了权重：口渴的人看杯子，读书的人看书。"},
             fmt::format("α(drink, cup) = {:.3f}, α(read, book) = {:.3f}", drink, read));
}

namespace {

struct Trained {
  std::vector<double> step, loss;
  Tensor output;  // (2, 2), one row per task
};

// Gradient descent on the mean squared distance between where the eye goes and where it should go.
template <class MakeScorer>
Trained train(const Tensor& w, const MakeScorer& scorer, const Tensor& wanted) {
  Trained result;
  const Tensor leaf = parameter(w);
  for (int step = 0; step <= 600; ++step) {
    Tape tape;
    const Attended a = attend(scorer(leaf), tasks(1), offers(), places());
    const Tensor loss = scale(squared_error(a.output, wanted, Reduction::sum), 0.5f);
    tape.backward(loss);
    const Tensor gradient = tape.grad(leaf);
    for (int64_t i = 0; i < w.numel(); ++i) leaf.mutable_ptr()[i] -= 0.5f * gradient.ptr()[i];
    result.step.push_back(step);
    result.loss.push_back(loss.item());
    result.output = a.output.detached();
  }
  return result;
}

}  // namespace

void learned_pooling(Page& page) {
  page.heading({"Learned, with and without a query", "学习：有查询与没有查询"});
  page.say(
      {"Could a better $w$ serve both tasks? Train it: whoever is thirsty should look at the cup, the reader at the book, and the loss is "
       "the mean squared distance on the desk. A score of the key alone must give both the same answer, and the best single answer to two "
       "wishes is the point half way between, where nothing lies. Its loss cannot go below a quarter of the squared distance. With $a = "
       "q^\\top W k$ there is no such floor.",
       "换一个更好的 $w$，能不能同时满足两个任务？来训练它：口渴的人应看杯子，读者应看书，损失是桌面上的均方距离。只看键的评分必须给两者同"
       "一个答案，而对两个愿望来说最好的单一答案是两物的中点，那里什么也没有；它的损失不可能低于距离平方的四分之一。用 $a = q^\\top W k$ 就"
       "没有这个下限。"});
  const Tensor v = places();
  const Tensor wanted({2, 2}, {v.at({kCup, 0}), v.at({kCup, 1}), v.at({kBook, 0}), v.at({kBook, 1})});
  const double dx = v.at({kCup, 0}) - v.at({kBook, 0}), dy = v.at({kCup, 1}) - v.at({kBook, 1}),
               floor = (dx * dx + dy * dy) / 4;
  const Trained keys_only = train(
      zeros({4}), [](const Tensor& w) { return Salience{w}; }, wanted);
  const Trained with_query = train(
      zeros({4, 4}), [](const Tensor& w) { return Bilinear{w}; }, wanted);
  page.table(
      {{"learned score", "学到的评分"},
       {"looks, thirsty", "口渴时看向"},
       {"looks, reading", "读书时看向"},
       {"loss", "损失"}},
      {{"$w^\\top k$", place(keys_only.output, 0), place(keys_only.output, 1), rounded(keys_only.loss.back(), 4)},
       {"$q^\\top W k$", place(with_query.output, 0), place(with_query.output, 1),
        rounded(with_query.loss.back(), 4)}});
  page.draw("learned-pooling",
            curves({{"key only", keys_only.step, keys_only.loss},
                    {"query and key", with_query.step, with_query.loss},
                    {"floor without a query", {0, 600}, {floor, floor}, line_style("k:")}},
                   {.label = "step"}, {.label = "mean squared distance", .scale = AxisScale::log}),
            {"Training ends at the floor when the score cannot see the task, and goes on down when it can.",
             "评分看不到任务时，训练停在下限；看得到时，损失继续下降。"});
  page.claim(
      same_rows(keys_only.output) && keys_only.loss.back() > floor - 1e-4 && keys_only.loss.back() < 1.05 * floor,
      {"Learned pooling without a query ends in one compromise for both tasks.",
       "没有查询的可学习汇聚，只能为两个任务给出同一个折中。"},
      fmt::format("loss {:.4f} after training, the floor is {:.4f}", keys_only.loss.back(), floor));
  page.claim(
      with_query.loss.back() < 0.05 * floor,
      {"With a query the same training serves both.", "有了查询，同样的训练能兼顾两者。"},
      fmt::format("loss {:.4f} after training, the floor without a query was {:.4f}", with_query.loss.back(), floor));
}

}  // namespace cues

Lab cues_lab() {
  return {
      "10.1",
      "cues",
      {"Attention cues: queries, keys and values", "注意力提示：查询、键和值"},
      {cues::words, cues::desk, cues::learned_pooling, cues::identity_map, cues::random_map, cues::database,
       cues::kinds_of_weights, cues::translation, cues::covariance, cues::search_engine, cues::squeeze_and_excitation}};
}

}  // namespace qkv::labs
