// Diagrams of 10.6, 10.7, 11.8 and 11.9: ways to connect tokens, the Transformer, images, patterns of pretraining.
#include <fmt/format.h>

#include <cmath>

#include "qkv/labs/sketches.h"

namespace qkv::labs {
namespace {

constexpr int kTokens = 5;

// A row of circles; returns their numbers.
std::vector<size_t> row(DiagramPen& pen, double left, double y, const std::string& letter, Part part,
                        const std::string& link) {
  std::vector<size_t> out;
  for (int i = 0; i < kTokens; ++i)
    out.push_back(pen.circle(left + 26 + 44 * i, y, 16, fmt::format("{}{}", letter, i + 1), part, link));
  return out;
}

void convolution(DiagramPen& pen, double left) {
  const std::string link = "#self-attention-three-ways-to-connect-tokens";
  pen.strong(left + 114, 16, tr("CNN, kernel 3"));
  const auto x = row(pen, left, 230, "x", Part::value, link), h = row(pen, left, 140, "h", Part::layer, link),
             y = row(pen, left, 50, "y", Part::output, link);
  for (int i = 0; i < kTokens; ++i)
    for (int j = std::max(0, i - 1); j <= std::min(kTokens - 1, i + 1); ++j) {
      pen.join(x[static_cast<size_t>(j)], h[static_cast<size_t>(i)]);
      pen.join(h[static_cast<size_t>(j)], y[static_cast<size_t>(i)]);
    }
  pen.soft(left + 114, 270, tr("longest path n / k"));
}

void recurrence(DiagramPen& pen, double left) {
  const std::string link = "#self-attention-how-many-layers-how-many-steps";
  pen.strong(left + 114, 16, tr("RNN"));
  const auto x = row(pen, left, 230, "x", Part::value, link), h = row(pen, left, 140, "h", Part::layer, link),
             y = row(pen, left, 50, "y", Part::output, link);
  for (size_t i = 0; i < kTokens; ++i) {
    pen.join(x[i], h[i]);
    pen.join(h[i], y[i]);
    if (i) pen.join(h[i - 1], h[i]);
  }
  pen.soft(left + 114, 270, tr("longest path n, one step after the other"));
}

void all_pairs(DiagramPen& pen, double left) {
  const std::string link = "#self-attention-tokens-that-attend-to-each-other";
  pen.strong(left + 114, 16, tr("self-attention"));
  const auto x = row(pen, left, 230, "x", Part::value, link), y = row(pen, left, 50, "y", Part::output, link);
  for (const size_t from : x)
    for (const size_t to : y) pen.join(from, to, Part::weight).width = 0.8;
  pen.soft(left + 114, 270, tr("longest path 1, n² pairs"));
}

// A square of cells; the cell of query i and key j is filled if it is seen.
void pattern(DiagramPen& pen, double left, double top, int rows, int cols, bool causal, const std::string& link) {
  constexpr double kCell = 22;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j)
      pen.box(left + kCell * j, top + kCell * i, kCell - 2, kCell - 2, "", causal && j > i ? Part::plain : Part::weight,
              link);
}

}  // namespace

Sketch connections_sketch() {
  DiagramPen pen(760, 286, tr("CNN, RNN and self-attention over five tokens"));
  convolution(pen, 4);
  recurrence(pen, 262);
  all_pairs(pen, 520);
  return {"connections-diagram", pen.done(),
          tr("How far the first token is from the last: two layers of convolution, four recurrent steps, one step of "
             "self-attention.")};
}

Sketch transformer_sketch() {
  DiagramPen pen(760, 560, tr("The Transformer"));
  const auto stack = [&](double left, const std::vector<std::pair<Text, std::pair<Part, std::string>>>& parts) {
    std::vector<size_t> out;
    double y = 470;
    for (const auto& [name, how] : parts) {
      out.push_back(pen.box(left, y, 200, 34, name, how.first, how.second));
      if (out.size() > 1) pen.join(out[out.size() - 2], out.back());
      y -= 52;
    }
    return out;
  };
  const std::string norm = "#transformer-add-and-norm", network = "#transformer-a-network-for-every-position",
                    encoder_link = "#transformer-the-encoder", decoder_link = "#transformer-the-decoder";
  pen.path({{44, 208}, {44, 414}, {336, 414}, {336, 208}, {44, 208}}).head = false;
  pen.path({{424, 104}, {424, 414}, {716, 414}, {716, 104}, {424, 104}}).head = false;
  const auto encoder = stack(90, {{tr("embedding"), {Part::layer, encoder_link}},
                                  {tr("+ positions"), {Part::key, "#self-attention-positions-as-sines-and-cosines"}},
                                  {tr("multi-head attention"), {Part::weight, encoder_link}},
                                  {tr("add and norm"), {Part::layer, norm}},
                                  {tr("feed-forward network"), {Part::value, network}},
                                  {tr("add and norm"), {Part::layer, norm}}});
  const auto decoder =
      stack(470, {{tr("embedding"), {Part::layer, decoder_link}},
                  {tr("+ positions"), {Part::key, "#transformer-what-is-the-position-of-the-word-being-generated"}},
                  {tr("masked attention"), {Part::weight, "#transformer-what-the-mask-prevents"}},
                  {tr("add and norm"), {Part::layer, norm}},
                  {tr("attention to the source"), {Part::weight, decoder_link}},
                  {tr("add and norm"), {Part::layer, norm}},
                  {tr("feed-forward network"), {Part::value, network}},
                  {tr("add and norm"), {Part::layer, norm}},
                  {tr("output layer, softmax"), {Part::output, "#transformer-how-large-it-is"}}});
  const auto skip = [&](double left, double from, double to) {
    pen.path({{left, from}, {left - 26, from}, {left - 26, to}, {left, to}}).dashed = true;
  };
  skip(90, 408, 331);
  skip(90, 308, 227);
  for (const double from : {408.0, 304.0, 200.0}) skip(470, from, from - 77);
  pen.path({{290, 227}, {380, 227}, {380, 279}, {470, 279}}, Part::key);
  pen.words(190, 524, tr("source"));
  pen.words(570, 524, tr("target, one step late"));
  pen.soft(316, 428, tr("n times"));
  pen.soft(696, 428, tr("n times"));
  (void)encoder;
  (void)decoder;
  return {
      "transformer-diagram", pen.done(),
      tr("Encoder and decoder, after the norm as in the book. Dashed: residual connections. Each block leads to the "
         "paragraph that explains it.")};
}

Sketch vision_sketch() {
  DiagramPen pen(760, 330, tr("The vision Transformer"));
  const std::string cut = "#vision-transformer-an-image-as-a-sequence", where = "#vision-transformer-where-a-patch-is",
                    learn = "#vision-transformer-learning-to-see";
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      pen.box(14 + 32 * j, 110 + 32 * i, 28, 28, std::to_string(3 * i + j + 1), Part::value, cut);
  pen.words(60, 94, tr("image"));
  pen.path({{112, 156}, {150, 156}});
  const size_t encoder =
      pen.box(150, 96, 580, 40, tr("Transformer encoder (norm before each part)"), Part::weight, learn);
  const char* names[] = {"1", "2", "3", "4", "…", "9"};
  const size_t cls = pen.box(156, 232, 62, 30, "<cls>", Part::query, "#exercise-11.8.2");
  pen.path({{187, 232}, {187, 208}});
  pen.box(160, 180, 54, 28, "+ p0", Part::key, where);
  pen.path({{187, 180}, {187, 136}});
  for (int i = 0; i < 6; ++i) {
    const double x = 250 + 82 * i;
    const size_t patch = pen.box(x, 284, 54, 28, names[i], Part::value, cut);
    const size_t linear = pen.box(x - 6, 232, 66, 30, tr("linear"), Part::layer, cut);
    const size_t place = pen.box(x, 180, 54, 28,
                                 i == 4   ? "…"
                                 : i == 5 ? "+ p9"
                                          : fmt::format("+ p{}", i + 1),
                                 Part::key, where);
    pen.join(patch, linear);
    pen.join(linear, place);
    pen.path({{x + 27, 180}, {x + 27, 136}});
  }
  const size_t head = pen.box(150, 24, 130, 40, tr("norm and\nlinear layer"), Part::layer, learn);
  const size_t label = pen.box(330, 24, 110, 40, tr("class"), Part::output, learn);
  pen.path({{215, 96}, {215, 64}});
  pen.join(head, label);
  (void)cls;
  (void)encoder;
  return {"vision-diagram", pen.done(),
          tr("An image becomes a sequence of patches; one more token, or the mean of all, carries the answer.")};
}

Sketch pretraining_sketch() {
  DiagramPen pen(760, 300, tr("Three patterns of pretraining"));
  const std::string link = "#language-models-who-sees-whom", objectives = "#language-models-three-objectives";
  pen.strong(100, 16, tr("encoder alone (BERT)"));
  pattern(pen, 45, 70, 5, 5, false, link);
  pen.soft(100, 200, tr("all see all"));
  pen.words(100, 262, tr("hide words,\nname them"), objectives);
  pen.strong(380, 16, tr("encoder and decoder (T5)"));
  pattern(pen, 250, 70, 5, 5, false, link);
  pattern(pen, 380, 126, 4, 5, false, link);
  pattern(pen, 506, 126, 4, 4, true, link);
  pen.soft(303, 200, tr("source to source"));
  pen.soft(434, 232, tr("target to source"));
  pen.soft(560, 110, tr("target to target"));
  pen.words(380, 274, tr("cut out spans, write them again"), objectives);
  pen.strong(680, 16, tr("decoder alone (GPT)"));
  pattern(pen, 625, 70 + 0, 5, 5, true, link);
  pen.soft(680, 200, tr("nobody sees what follows"));
  pen.words(680, 262, tr("name the\nnext word"), objectives);
  return {
      "pretraining-diagram", pen.done(),
      tr("Rows are queries, columns keys; filled cells are seen. The full square, the square with a rectangle and a "
         "triangle, and the triangle alone.")};
}

std::vector<Sketch> sketches_of(const std::string& lab) {
  if (lab == "cues") return {cues_sketch(), pooling_sketch()};
  if (lab == "scoring") return {scoring_sketch()};
  if (lab == "bahdanau") return {seq2seq_sketch()};
  if (lab == "multi-head") return {multi_head_sketch()};
  if (lab == "self-attention") return {connections_sketch()};
  if (lab == "transformer") return {transformer_sketch()};
  if (lab == "vision-transformer") return {vision_sketch()};
  if (lab == "language-models") return {pretraining_sketch()};
  return {};
}

}  // namespace qkv::labs
