// Lab 10.1: a picture in colour among black-and-white ones, and a convolution as a cue without a query.
#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/cues.h"
#include "qkv/labs/show.h"
#include "qkv/ops/conv.h"
#include "qkv/ops/softmax.h"

namespace qkv::labs::cues {
namespace {

constexpr int64_t kPictures = 9, kColourful = 3, kWanted = 6;

// A row of pictures, (9, 2): how colourful each is, and how well it shows the bridge that somebody looks for.
Tensor row_of_pictures(int64_t colourful) {
  Tensor keys = Tensor::empty({kPictures, 2});
  for (int64_t i = 0; i < kPictures; ++i) {
    keys.mutable_ptr()[2 * i] = i == colourful ? 1.0f : 0.05f;
    keys.mutable_ptr()[2 * i + 1] = i == kWanted ? 1.0f : 0.1f;
  }
  return keys;
}

std::vector<double> weights_of(const Attended& attended) { return numbers(attended.weights.row(0, 0, 0)); }

// What a filter that compares each picture with its neighbours says about their colour, (9).
std::vector<double> contrast(int64_t colourful) {
  Tensor colour = Tensor::empty({1, 1, kPictures});
  const Tensor keys = row_of_pictures(colourful);
  for (int64_t i = 0; i < kPictures; ++i) colour.mutable_ptr()[i] = keys.ptr()[2 * i];
  return numbers(conv1d(colour, Tensor({1, 1, 3}, {-0.5f, 1, -0.5f}), {}, {.padding = 1}));
}

}  // namespace

void black_and_white(Page& page) {
  page.heading(tr("Black-and-white pictures, and one in colour"));
  page.say(tr(
      "Nine pictures in a row, one of them in colour. Whoever looks without a purpose sees that one. Whoever looks for "
      "a bridge looks through the black-and-white ones too: the seventh shows it. The key of a picture has two "
      "numbers, how colourful it is and how well it shows a bridge."));
  const Tensor keys = row_of_pictures(kColourful), values = keys;
  const auto salient = weights_of(attend(Salience{Tensor({2}, {6, 0})}, Tensor({1, 2}, {0, 0}), keys, values));
  const auto asked = weights_of(attend(Dot{}, Tensor({1, 2}, {0, 8}), keys, values));
  std::vector<Label> names;
  for (int64_t i = 0; i < kPictures; ++i) names.emplace_back(std::to_string(i + 1));
  page.draw("pictures",
            bars(names, {{tr("no query: salience"), salient}, {tr("query: a bridge"), asked}}, {.label = tr("picture")},
                 {.label = tr("attention weight"), .low = 0, .high = 1}),
            tr("The fourth picture is in colour, the seventh shows the bridge."));
  page.claim(salient[kColourful] > 0.9 && asked[kWanted] > 0.9,
             tr("The one in colour wins without a query; with one, a black-and-white picture does."),
             tr("weight of the picture in colour {salient:.3f} and {asked:.3f}, of the bridge {unasked:.3f} and "
                "{wanted:.3f}",
                "salient"_a = salient[kColourful], "asked"_a = asked[kColourful], "unasked"_a = salient[kWanted],
                "wanted"_a = asked[kWanted]));
}

void convolution_cue(Page& page) {
  page.heading(tr("A convolution is a cue without a query"));
  page.say(
      tr("A filter that subtracts the neighbours of each picture from it answers where something differs. It can be "
         "learned, but nothing can be asked: its answer depends on the pictures alone. Softmax makes weights of it:"));
  page.formula("\\alpha_i = \\softmax_i(c (x_i - \\frac{1}{2} x_{i-1} - \\frac{1}{2} x_{i+1}))");
  const std::vector<double> response = contrast(kColourful);
  Tensor scores = Tensor::empty({1, kPictures});
  for (size_t i = 0; i < response.size(); ++i) scores.mutable_ptr()[i] = static_cast<float>(6 * response[i]);
  const std::vector<double> weights = numbers(softmax(scores));
  std::vector<double> place(kPictures);
  for (size_t i = 0; i < place.size(); ++i) place[i] = static_cast<double>(i + 1);
  page.draw(
      "convolution",
      curves({{tr("response"), place, response, line_style("bo-")}, {tr("weight"), place, weights, line_style("ro--")}},
             {.label = tr("picture")}, {.label = {}}),
      tr("The response of the filter to the colour of the pictures, and the weights that it gives."));
  int64_t found = 0, places = 0;
  for (int64_t at = 1; at + 1 < kPictures; ++at, ++places) {
    const std::vector<double> answer = contrast(at);
    found += std::max_element(answer.begin(), answer.end()) - answer.begin() == at;
  }
  page.claim(found == places && weights[kColourful] > 0.9,
             tr("Wherever the picture in colour hangs, the filter finds it: the cue moves with it, and nobody asked."),
             tr("found at {found} of {places} places; weight {weight:.3f}", "found"_a = found, "places"_a = places,
                "weight"_a = weights[kColourful]));
}

}  // namespace qkv::labs::cues
