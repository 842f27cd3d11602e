// Lab 10.7: the weights of every layer and head while a sentence is translated, as the book's three figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/data/text.h"
#include "qkv/labs/transformer.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"

namespace qkv::labs::transformer {
namespace {

// Weights by kind, one layer after the other, each (1, H, queries, keys).
struct Maps : Probe {
  std::vector<Tensor> encoder, self, cross;
  void attention(std::string_view path, const Weights& w) override {
    (path.starts_with("encoder") ? encoder : path.ends_with("self") ? self : cross).push_back(w.matrix());
  }
};

// (layers, heads, queries, keys).
Tensor of_layers(const std::vector<Tensor>& layers) {
  const Shape one = layers[0].shape();
  return reshape(stack(layers), {std::ssize(layers), one[1], one[2], one[3]});
}

Figure grid(const Tensor& maps, const std::vector<std::string>& keys, const std::vector<std::string>& queries) {
  Figure out = heatmaps(maps, tr("Key positions"), tr("Query positions"), head_names(maps.size(1)),
                        {.colours = {.low = 0, .high = 1}, .x_tokens = keys, .y_tokens = queries});
  for (int64_t layer = 0; layer < maps.size(0); ++layer)
    out.panels[static_cast<size_t>(layer * maps.size(1))].y.label = tr("Layer {layer}: queries", "layer"_a = layer + 1);
  return out;
}

// The largest weight on keys for which `hidden(query, key)`, and how far the rows are from summing to 1.
template <class Hidden>
std::pair<double, double> seen_and_off(const Tensor& maps, Hidden hidden) {
  double seen = 0, off = 0;
  const int64_t queries = maps.size(2), keys = maps.size(3);
  for (int64_t row = 0; row < maps.numel() / keys; ++row) {
    double sum = 0;
    for (int64_t k = 0; k < keys; ++k) {
      const double w = maps.ptr()[row * keys + k];
      sum += w;
      if (hidden(row % queries, k)) seen = std::max(seen, w);
    }
    off = std::max(off, std::abs(sum - 1));
  }
  return {seen, off};
}

// The mean of the largest weight of a query, by layer: 1 is one-hot.
std::string sharpness(const Tensor& maps, int64_t real_queries) {
  std::string out;
  const int64_t heads = maps.size(1), queries = maps.size(2), keys = maps.size(3);
  for (int64_t layer = 0; layer < maps.size(0); ++layer) {
    double sum = 0;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t q = 0; q < real_queries; ++q) {
        const float* row = maps.ptr() + ((layer * heads + h) * queries + q) * keys;
        sum += *std::max_element(row, row + keys);
      }
    out += fmt::format("{}{:.2f}", layer ? " / " : "", sum / static_cast<double>(heads * real_queries));
  }
  return out;
}

std::string sentence_for_maps(Page& page) {
  if (!page.data().empty()) return "i'm home .";
  // Short, so that its words can be read on the axes.
  const SentencePairs& held = judged(page, Judge::model);
  const auto words = [](const std::string& s) { return split_blanks(s).size(); };
  std::string best;
  for (const std::string& s : held.source)
    if (words(s) >= 5 && (best.empty() || words(s) < words(best))) best = s;
  return best;
}

}  // namespace

void maps_step(Page& page) {
  page.heading(tr("What the heads look at"));
  const Trained& model = trained(page, Kind::model);
  const Translator translator = model.translator();
  const Tokenizers& tokenizers = translator.tokenizers();
  const std::string sentence = sentence_for_maps(page);
  const Translation translation = translator.translate(std::span(&sentence, 1), translator.defaults())[0];
  const auto length = static_cast<int64_t>(translation.source.size());
  // Padded to ten as the book does, or by four: the padding must stay unseen.
  std::vector<int32_t> source = translation.source;
  source.resize(static_cast<size_t>(page.data().empty() ? length + 4 : std::max<int64_t>(10, length)),
                tokenizers.source.pad());
  std::vector<int32_t> fed = translation.hypotheses[0].tokens;
  fed.insert(fed.begin(), tokenizers.target.bos());
  const auto n = static_cast<int64_t>(source.size()), steps = static_cast<int64_t>(fed.size());
  Maps maps;
  const Ids lens({1}, {static_cast<int32_t>(length)});
  network(model).logits(Ids({1, n}, source), lens, Ids({1, steps}, fed), Run{.probe = &maps});
  const Tensor encoder = of_layers(maps.encoder), self = of_layers(maps.self), cross = of_layers(maps.cross);
  const auto source_words = tokenizers.source.tokens(source), target_words = tokenizers.target.tokens(fed);
  page.say(tr(
      "The sentence \"{sentence}\" and its translation \"{translation}\". Each row of panels is a layer, each column a "
      "head; the rows of a panel are queries, its columns keys; dark is a weight near 1.",
      "sentence"_a = sentence, "translation"_a = translator.text(translation.hypotheses[0])));
  page.print(tr(
      "encoder self-attention    {encoder}   largest weight of a query, mean by layer  {encoder_mean}\n"
      "decoder self-attention    {decoder}     {decoder_mean}\n"
      "encoder-decoder           {cross}    {cross_mean}",
      "encoder"_a = encoder.shape(), "encoder_mean"_a = sharpness(encoder, length), "decoder"_a = self.shape(),
      "decoder_mean"_a = sharpness(self, steps), "cross"_a = cross.shape(), "cross_mean"_a = sharpness(cross, steps)));
  page.draw(
      "encoder-self", grid(encoder, source_words, source_words),
      tr("Self-attention of the encoder. No query looks at `<pad>`; the rows of `<pad>` are computed but never used."));
  page.draw(
      "decoder-self", grid(self, target_words, target_words),
      tr("Self-attention of the decoder: a triangle, as no word sees a later one. The first row has one word to look "
         "at."));
  page.draw(
      "cross", grid(cross, source_words, target_words),
      tr("Attention of the decoder to the encoder: where it looks, having just read the word of the row, to choose the "
         "next word."));
  const auto beyond = [&](int64_t, int64_t key) { return key >= length; };
  const auto [in_encoder, off_encoder] = seen_and_off(encoder, beyond);
  const auto [in_cross, off_cross] = seen_and_off(cross, beyond);
  const auto [later, off_self] = seen_and_off(self, [](int64_t query, int64_t key) { return key > query; });
  page.claim(
      in_encoder == 0 && in_cross == 0,
      tr("In encoder self-attention and cross-attention the columns beyond the source's length are exactly 0, in all "
         "layers and heads."),
      tr("largest weight on the {count} padding positions: {in_encoder} in the encoder, {in_cross} in cross-attention",
         "count"_a = n - length, "in_encoder"_a = in_encoder, "in_cross"_a = in_cross));
  page.claim(later == 0, tr("The decoder's self-attention is lower-triangular: no query attends past itself."),
             tr("largest weight above the diagonal {weight}", "weight"_a = later));
  const double off = std::max({off_encoder, off_cross, off_self});
  page.claim(off < 1e-5, tr("Every row of every map sums to 1."),
             tr("the sum is off by at most {off}", "off"_a = tiny(off)));
  page.say(tr(
      "The decoder's rows can be computed all at once, as here, or one per step, as in generation: the weights are the "
      "same. `qkv inspect --model RUN` draws them for any sentence."));
}

}  // namespace qkv::labs::transformer
