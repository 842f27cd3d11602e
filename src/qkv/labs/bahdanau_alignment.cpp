// Lab 10.4: heat maps of the weights, and the weights as word alignments against gold links.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/tasks/translation/word_attention.h"

namespace qkv::labs::bahdanau {
namespace {

// A held-out pair with the weights between its words: (target words, source words), while the decoder is made to write
// the target.
struct Looked {
  const AlignedPair* pair;
  Tensor weights;
};

std::vector<Looked> look(Page& page, std::span<const AlignedPair> pairs) {
  const Translator translator = trained(page, Kind::aligned).translator();
  const Tokenizers& tokenizers = translator.tokenizers();
  std::vector<Looked> out;
  const auto forced = translator.force(sentences_of(pairs));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Tensor w = word_attention(forced[i].forced.attention, tokenizers.source, pairs[i].source, tokenizers.target,
                                    pairs[i].target);
    out.push_back({&pairs[i], w.viewed({w.size(1), w.size(2)})});
  }
  return out;
}

std::vector<std::string> words(const std::string& sentence) {
  std::vector<std::string> out;
  for (const std::string_view word : split_blanks(sentence)) out.emplace_back(word);
  return out;
}

int64_t heaviest(const Tensor& weights, int64_t target) {
  const float* row = weights.ptr() + target * weights.size(1);
  return std::max_element(row, row + weights.size(1)) - row;
}

bool linked(const AlignedPair& pair, int64_t source, int64_t target) {
  const auto has = [&](const WordLinks& links) {
    return std::find(links.begin(), links.end(),
                     std::pair(static_cast<int32_t>(source), static_cast<int32_t>(target))) != links.end();
  };
  return has(pair.links) || has(pair.possible);
}

// The largest weight of a target word is on a word of its own or next to one.
bool beside(const Looked& looked, int64_t target) {
  const int64_t at = heaviest(looked.weights, target);
  return linked(*looked.pair, at, target) || linked(*looked.pair, at - 1, target) ||
         linked(*looked.pair, at + 1, target);
}

// Two neighbours with one sure link each that stand the other way round in the target.
std::vector<std::pair<int32_t, int32_t>> swaps(const AlignedPair& pair) {
  std::vector<std::pair<int32_t, int32_t>> out;  // target words of the first and the second
  const auto only = [&](int32_t s) {
    int32_t found = -1, count = 0;
    for (const auto& [a, t] : pair.links)
      if (a == s) found = t, ++count;
    return count == 1 ? found : -1;
  };
  for (int32_t s = 0; s + 1 < static_cast<int32_t>(words(pair.source).size()); ++s)
    if (const int32_t a = only(s), b = only(s + 1); a >= 0 && b >= 0 && a == b + 1) out.emplace_back(a, b);
  return out;
}

// Target words of "ne ... pas" and the like, of a word "not" that is linked with two.
std::vector<int32_t> negation(const AlignedPair& pair) {
  const auto source = words(pair.source);
  std::vector<int32_t> out;
  for (const auto& [s, t] : pair.links)
    if (source[static_cast<size_t>(s)] == "not") out.push_back(t);
  return out.size() == 2 ? out : std::vector<int32_t>{};
}

Panel panel(const Looked& looked) {
  HeatMap map{looked.weights, words(looked.pair->source), words(looked.pair->target), {}, false, true};
  for (const auto& [s, t] : looked.pair->links) map.boxes.push_back({t, s});
  return {map, "", {.label = "source words"}, {.label = "target words"}};
}

Figure figure(const Looked& looked) {
  Figure out;
  out.panels = {panel(looked)};
  out.colours = {.low = 0, .high = 1};
  return out;
}

// The shortest pair of at least six words for which `fits`.
template <class Fits>
const AlignedPair* shortest(const std::vector<AlignedPair>& pairs, Fits fits) {
  const AlignedPair* best = nullptr;
  for (const AlignedPair& pair : pairs) {
    const auto size = words(pair.source).size();
    if (size >= 6 && fits(pair) && (!best || size < words(best->source).size())) best = &pair;
  }
  return best;
}

// The word at the same place of a sentence of another length.
Alignment diagonal(int64_t source, int64_t target) {
  Alignment out;
  for (int64_t t = 0; t < target; ++t)
    out.push_back(
        {static_cast<int32_t>(std::min(source - 1, (2 * t + 1) * source / (2 * target))), static_cast<int32_t>(t)});
  return out;
}

}  // namespace

void heat_map_step(Page& page) {
  if (page.data().empty()) return;
  page.heading({"The book's heat map", "书中的热图"});
  const Trained& model = trained(page, Kind::attention);
  const Translator translator = model.translator();
  TranslateOptions options = translator.defaults();
  options.keep_attention = true;
  const std::vector<std::string> sentence = {"i'm home ."};
  const Translation translation = translator.translate(sentence, options)[0];
  const Hypothesis& best = translation.hypotheses[0];
  std::vector<int32_t> written = best.tokens;
  if (best.ended) written.push_back(translator.tokenizers().target.eos());
  const int64_t steps = best.attention.size(0), keys = best.attention.size(2);
  page.draw(
      "book-heat-map",
      heatmaps(best.attention.viewed({steps, keys}), "Key positions", "Query positions", {},
               {.x_tokens = translator.tokenizers().source.tokens(translation.source),
                .y_tokens = translator.tokenizers().target.tokens(written)}),
      {"Weights for `i'm home .`, a row for every word that was written. As in the book there is no sharp alignment: with 601 short "
       "sentences, most of them known by heart, the decoder has little need of one.",
       "`i'm home .` 的权重，每写一个词一行。和书中一样看不到清晰的对齐：只有 601 个短句，且大多已被记住，解码器几乎不需要对齐。"});
  double differ = 0;
  for (int64_t i = 1; i < steps; ++i)
    for (int64_t k = 0; k < keys; ++k)
      differ =
          std::max(differ, std::abs(static_cast<double>(best.attention.ptr()[i * keys + k]) - best.attention.ptr()[k]));
  page.claim(differ > 0.05, {"Each query weighs the keys differently.", "不同的查询给键以不同的权重。"},
             fmt::format("a weight differs from the first row's by up to {:.2f}", differ));
  page.say(
      {"To see alignment, take a corpus where word order matters and the gold links are known: the built-in one, from "
       "here to the next exercise.",
       "要看到对齐，需要词序重要且标准对齐已知的语料：以下直到练习之前都用内置语料。"});
}

void swap_step(Page& page) {
  page.heading({"Where the decoder looks", "解码器看向哪里"});
  page.say(
      {"Rows are the French words as they are written, columns the English words; dark is a weight near 1. Frames are the gold links, "
       "which the model has never seen. It was trained on sentences alone.",
       "每行是正在写出的法语词，每列是英语词；颜色越深，权重越接近 1。方框是标准对齐，模型从未见过：它只用句子训练。"});
  const std::vector<AlignedPair>& held = held_out(page);
  const AlignedPair* swapped = shortest(held, [](const AlignedPair& p) { return !swaps(p).empty(); });
  const AlignedPair* negated = shortest(held, [](const AlignedPair& p) { return !negation(p).empty(); });
  if (swapped)
    page.draw("adjective-swap", figure(look(page, std::span(swapped, 1))[0]),
              {"An adjective that stands behind its noun in French: the weights cross there.",
               "形容词在法语中位于名词之后：权重在那里交叉。"});
  if (negated)
    page.draw("negation", figure(look(page, std::span(negated, 1))[0]),
              {"The two-part negation: `ne` and `pas` belong to the one English word `not`.",
               "两部分的否定：`ne` 和 `pas` 都对应英语的 `not`。"});
  double crossed = 0, all_swaps = 0, first = 0, second = 0, either = 0, negations = 0;
  for (const Looked& looked : look(page, held)) {
    for (const auto& [a, b] : swaps(*looked.pair)) {
      ++all_swaps;
      crossed +=
          linked(*looked.pair, heaviest(looked.weights, a), a) && linked(*looked.pair, heaviest(looked.weights, b), b);
    }
    if (const auto parts = negation(*looked.pair); !parts.empty()) {
      ++negations;
      const bool ne = linked(*looked.pair, heaviest(looked.weights, parts[0]), parts[0]);
      const bool pas = linked(*looked.pair, heaviest(looked.weights, parts[1]), parts[1]);
      first += ne, second += pas;
      either += beside(looked, parts[0]) || beside(looked, parts[1]);
    }
  }
  page.claim(
      crossed > 0.3 * all_swaps,
      {"Where adjective and noun change places, the weights cross with both on their own word, more than fifteen times "
       "as often as the one time in fifty of chance.",
       "形容词与名词换位之处，权重也交叉，且两者都落在各自的词上，次数是偶然（五十分之一）的十五倍以上。"},
      fmt::format("in {:.0f} of {:.0f} swaps", crossed, all_swaps));
  page.claim(
      either > 0.5 * negations,
      {"In most negations at least one half looks at the English word or at the one beside it, whose state carries it too. Which half "
       "depends on the training: once `ne` and the verb are written, `pas` follows without a look.",
       "在大多数否定句中，至少有一个成分的最大权重落在对应的英语词上，或落在与它相邻、状态中含有其信息的词上。是哪一个则因训练而异："
       "写出 `ne` 和动词之后，不看源句也知道该写 `pas`。"},
      fmt::format("{:.0f} of {:.0f} negations; at the word itself: first half {:.0f} times, second {:.0f}", either,
                  negations, first, second));
}

void alignment_step(Page& page) {
  page.heading({"Weights as alignments", "把权重当作词对齐"});
  page.say(
      {"Link every French word with the English word of its largest weight, and compare with the gold links on all held-out sentences. "
       "With links $A$, sure gold links $S$ and possible ones $P$ (Och and Ney, 2003):",
       "把每个法语词与权重最大的英语词相连，在全部留出句子上与标准对齐比较。记所得连接为 $A$，确定的标准连接为 "
       "$S$，可能的为 $P$（Och 与 Ney，2003）："});
  page.formula("\\mathrm{AER} = 1 - \\frac{|A \\cap S| + |A \\cap P|}{|A| + |S|}");
  AlignmentScore attention, straight;
  double mass = 0, even = 0, near = 0, target_words = 0;
  for (const Looked& looked : look(page, held_out(page))) {
    const Alignment gold = gold_of(*looked.pair);
    attention += score_alignment(align_words(looked.weights), gold);
    straight += score_alignment(diagonal(looked.weights.size(1), looked.weights.size(0)), gold);
    for (int64_t t = 0; t < looked.weights.size(0); ++t) {
      double on = 0, links = 0;
      for (int64_t s = 0; s < looked.weights.size(1); ++s)
        if (linked(*looked.pair, s, t)) on += looked.weights.at({t, s}), ++links;
      near += beside(looked, t);
      mass += on, even += links / static_cast<double>(looked.weights.size(1)), ++target_words;
    }
  }
  const auto row = [](const AlignmentScore& s) {
    return std::vector<std::string>{percent(*s.error_rate()), percent(*s.precision()), percent(*s.recall())};
  };
  named_table(page, {{"alignment", "对齐"}, {"AER", "AER"}, {"precision", "精确率"}, {"recall", "召回率"}},
              {{{"largest attention weight", "最大注意力权重"}, row(attention)},
               {{"along the diagonal", "沿对角线"}, row(straight)}});
  page.claim(near > 0.8 * target_words,
             {"At least eight French words in ten look at their own English word or at the word next to it.",
              "十个法语词中至少有八个看向各自的英语词，或与它相邻的词。"},
             fmt::format("{} at it, {} at it or beside it, of {} words", percent(*attention.precision()),
                         percent(near / target_words), grouped(static_cast<int64_t>(target_words))));
  page.claim(
      mass > 3 * even,
      {"The weights sit on the gold links: more than three times what even weights would put there.",
       "权重落在标准连接上：是均匀权重的三倍以上。"},
      fmt::format("{} of the weight; even weights {}", percent(mass / target_words), percent(even / target_words)));
  page.say(
      {"Attention is not made to be an alignment. The decoder looks where it finds what it needs for the next word, which for an article "
       "may be the noun that decides its gender, and states of the encoder know their neighbours: some trainings settle on the word "
       "beside. `qkv align` and `qkv inspect` do this for any model.",
       "注意力并不是为对齐而设的。解码器看向能找到下一个词所需信息的地方：写冠词时可能是决定其性别的名词，何况编码器的状态也知道邻词：有的"
       "训练会习惯于看旁边的词。`qkv align` 与 `qkv inspect` 可对任何模型这样做。"});
}

}  // namespace qkv::labs::bahdanau
