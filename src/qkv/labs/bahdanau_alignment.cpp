// Lab 10.4: heat maps of the weights, and the weights as word alignments against gold links.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/tasks/translation/word_attention.h"

namespace qkv::labs::bahdanau {
namespace {

// A held-out pair and the attention weights between its words, (target words, source words), with the decoder forced to
// write the target.
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

// Whether the largest weight of a target word is on a source word linked with it, or next to one.
bool beside(const Looked& looked, int64_t target) {
  const int64_t at = heaviest(looked.weights, target);
  return linked(*looked.pair, at, target) || linked(*looked.pair, at - 1, target) ||
         linked(*looked.pair, at + 1, target);
}

// Neighbouring source words with one sure link each whose target words are neighbours in the opposite order.
std::vector<std::pair<int32_t, int32_t>> swaps(const AlignedPair& pair) {
  std::vector<std::pair<int32_t, int32_t>> out;  // target words of the first and the second
  const auto only = [&](int32_t s) {
    int32_t found = -1, count = 0;
    for (const auto& [a, t] : pair.links)
      if (a == s) {
        found = t;
        ++count;
      }
    return count == 1 ? found : -1;
  };
  for (int32_t s = 0; s + 1 < static_cast<int32_t>(words(pair.source).size()); ++s)
    if (const int32_t a = only(s), b = only(s + 1); a >= 0 && b >= 0 && a == b + 1) out.emplace_back(a, b);
  return out;
}

// The two target words of a negation such as "ne ... pas", both linked with "not"; empty if there is none.
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
  return {map, "", {.label = tr("source words")}, {.label = tr("target words")}};
}

Figure figure(const Looked& looked) {
  Figure out;
  out.panels = {panel(looked)};
  out.colours = {.low = 0, .high = 1};
  return out;
}

// The shortest pair of at least six source words that satisfies `fits`.
template <class Fits>
const AlignedPair* shortest(const std::vector<AlignedPair>& pairs, Fits fits) {
  const AlignedPair* best = nullptr;
  for (const AlignedPair& pair : pairs) {
    const auto size = words(pair.source).size();
    if (size >= 6 && fits(pair) && (!best || size < words(best->source).size())) best = &pair;
  }
  return best;
}

// Links every target word with the source word at the same relative position.
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
  page.heading(tr("The book's heat map"));
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
      heatmaps(best.attention.viewed({steps, keys}), tr("Key positions"), tr("Query positions"), {},
               {.x_tokens = translator.tokenizers().source.tokens(translation.source),
                .y_tokens = translator.tokenizers().target.tokens(written)}),
      tr("Weights for `i'm home .`, one row per word written. As in the book, there is no sharp alignment: with 601 "
         "short sentences, most of them memorised, the decoder hardly needs one."));
  double differ = 0;
  for (int64_t i = 1; i < steps; ++i)
    for (int64_t k = 0; k < keys; ++k)
      differ =
          std::max(differ, std::abs(static_cast<double>(best.attention.ptr()[i * keys + k]) - best.attention.ptr()[k]));
  page.claim(differ > 0.05, tr("Each query weighs the keys differently."),
             tr("a weight differs from the first row's by up to {differ:.2f}", "differ"_a = differ));
  page.say(tr(
      "To see alignment, take a corpus where word order matters and the gold links are known: the built-in one, used "
      "from here to the next exercise."));
}

void swap_step(Page& page) {
  page.heading(tr("Where the decoder looks"));
  page.say(tr(
      "Rows are the French words in the order they are written, columns the English words; dark means a weight near 1. "
      "Frames mark the gold links, which the model has never seen: it was trained on sentences alone."));
  const std::vector<AlignedPair>& held = held_out(page);
  const AlignedPair* swapped = shortest(held, [](const AlignedPair& p) { return !swaps(p).empty(); });
  const AlignedPair* negated = shortest(held, [](const AlignedPair& p) { return !negation(p).empty(); });
  if (swapped)
    page.draw("adjective-swap", figure(look(page, std::span(swapped, 1))[0]),
              tr("An adjective that follows its noun in French: the weights cross there."));
  if (negated)
    page.draw("negation", figure(look(page, std::span(negated, 1))[0]),
              tr("Two-part negation: `ne` and `pas` both belong to the English word `not`."));
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
      first += ne;
      second += pas;
      either += beside(looked, parts[0]) || beside(looked, parts[1]);
    }
  }
  page.claim(
      crossed > 0.3 * all_swaps,
      tr("Where adjective and noun swap places, the weights cross too, each on its own word, more than fifteen times "
         "as often as by chance (one in fifty)."),
      tr("in {crossed:.0f} of {all_swaps:.0f} swaps", "crossed"_a = crossed, "all_swaps"_a = all_swaps));
  page.claim(
      either > 0.5 * negations,
      tr("In most negations at least one half looks at the English word or at a neighbour, whose state carries it too. "
         "Which half depends on the training run: once `ne` and the verb are written, `pas` follows without looking at "
         "the source."),
      tr("{either:.0f} of {negations:.0f} negations; at the word itself: first half {first:.0f} times, second "
         "{second:.0f}",
         "either"_a = either, "negations"_a = negations, "first"_a = first, "second"_a = second));
}

void alignment_step(Page& page) {
  page.heading(tr("Weights as alignments"));
  page.say(tr(
      "Link every French word with the English word that gets its largest weight, and compare with the gold links on "
      "all held-out sentences. With links $A$, sure gold links $S$ and possible ones $P$ (Och and Ney, 2003):"));
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
        if (linked(*looked.pair, s, t)) {
          on += looked.weights.at({t, s});
          ++links;
        }
      near += beside(looked, t);
      mass += on;
      even += links / static_cast<double>(looked.weights.size(1));
      ++target_words;
    }
  }
  const auto row = [](const AlignmentScore& s) {
    return std::vector<std::string>{percent(*s.error_rate()), percent(*s.precision()), percent(*s.recall())};
  };
  named_table(page, {tr("alignment"), verbatim("AER"), tr("precision"), tr("recall")},
              {{tr("largest attention weight"), row(attention)}, {tr("along the diagonal"), row(straight)}});
  page.claim(near > 0.8 * target_words,
             tr("At least eight French words in ten look at their own English word or at a word next to it."),
             tr("{precision} at the word, {near} at it or next to it, of {words} words",
                "precision"_a = percent(*attention.precision()), "near"_a = percent(near / target_words),
                "words"_a = grouped(static_cast<int64_t>(target_words))));
  page.claim(mass > 3 * even,
             tr("The gold links get more than three times the weight that even weights would give them."),
             tr("{share} of the weight; even weights {even}", "share"_a = percent(mass / target_words),
                "even"_a = percent(even / target_words)));
  page.say(tr(
      "Attention is not designed to be an alignment. The decoder looks where it finds what it needs for the next word: "
      "for an article, that may be the noun that decides its gender. Encoder states also know their neighbours, so "
      "some training runs settle on the word next to the right one. `qkv align` and `qkv inspect` do the same for any "
      "model."));
}

}  // namespace qkv::labs::bahdanau
