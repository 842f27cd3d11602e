// Lab 11.8: the exercises of the section.
#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/vision.h"
#include "qkv/ops/loss.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::vision {
namespace {

// Multiply-adds of the book's model on an image, forward: projections, feed-forward networks, and attention.
struct Cost {
  int64_t tokens;
  double products, attention;
};

const VisionTransformerConfig kBook{.patch = 16, .hidden = 512, .ffn = 2048, .heads = 8, .layers = 2};

// Processor time of a forward and a backward pass of the book's model on two images, in milliseconds per image; the
// faster of two.
double measured(int64_t side, const Rng& rng) {
  const SerialScope serial;
  const ImageSize size{1, side, side};
  const VisionTransformer model(kBook, size, 10, rng.at("model"));
  const Tensor images = uniform({2, 1, side, side}, rng.at("images"), 0, 1);
  double best = 1e30;
  for (int i = 0; i < 2; ++i)
    best = std::min(best, thread_seconds([&] {
                      Tape tape;
                      tape.backward(cross_entropy(model.logits(images, {}), Ids({2}, {3, 7})));
                    }));
  return best / 2 * 1e3;
}

Cost cost_of(int64_t side) {
  const int64_t n = kBook.tokens({1, side, side});
  const auto tokens = static_cast<double>(n), d = static_cast<double>(kBook.hidden),
             ffn = static_cast<double>(kBook.ffn), layers = static_cast<double>(kBook.layers);
  return {n, layers * tokens * (4 * d * d + 2 * d * ffn) + tokens * 256 * d, layers * 2 * tokens * tokens * d};
}

}  // namespace

void image_size(Page& page) {
  page.exercise("11.8.1");
  page.say(
      tr("How does `img_size` affect the time of training? With patches of 16 x 16, an image of twice the side has "
         "four times as many tokens. The products of every token with the weights grow by four; attention, which "
         "compares all tokens with each other, by sixteen."));
  std::vector<std::vector<std::string>> rows;
  for (const int64_t side : {48, 96, 192, 384, 768}) {
    const Cost c = cost_of(side);
    rows.push_back({text(side, " x ", side), std::to_string(c.tokens), rounded(c.products / 1e6, 0),
                    rounded(c.attention / 1e6, 0), percent(c.attention / (c.products + c.attention))});
  }
  page.table({tr("image"), tr("tokens"), tr("weights, million multiply-adds"), tr("attention, million"),
              tr("share of attention")},
             rows);
  const Cost small = cost_of(96), large = cost_of(192), huge = cost_of(768);
  const double growth = (large.products + large.attention) / (small.products + small.attention);
  page.claim(
      growth > 3.8 && growth < 5 && huge.attention > 0.3 * (huge.products + huge.attention),
      tr("At the book's sizes the work grows with the area of the image. Only at many hundred pixels per side does "
         "attention take a large part of it."),
      tr("from 96 to 192 pixels {growth:.2f} times the work; attention has {share} of it at 768", "growth"_a = growth,
         "share"_a = percent(huge.attention / (huge.products + huge.attention))));
  const Rng rng = Rng(page.seed()).at("vision").at("time");
  page.fact(tr("Measured: forward and backward passes of the book's model, one thread."),
            tr("{small:.0f} ms per image of 48 x 48, {book:.0f} of 96 x 96, {large:.0f} of 192 x 192",
               "small"_a = measured(48, rng), "book"_a = measured(96, rng), "large"_a = measured(192, rng)));
}

void mean_of_patches(Page& page) {
  page.exercise("11.8.2");
  const Seers& all = seers(page);
  page.say(
      tr("Project the mean of the patches' last states instead of the class token's. The class token has to learn "
         "where to look before anything else can be learned; the mean looks everywhere from the start, but cannot "
         "leave the background out."));
  page.claim(
      std::abs(all.mean.end() - all.cls.end()) < 0.08,
      tr("A class token is not needed: the mean of the patches does about as well, within eight points."),
      tr("mean {mean}, class token {cls}", "mean"_a = percent(all.mean.end()), "cls"_a = percent(all.cls.end())));
}

void better(Page& page) {
  page.exercise("11.8.3");
  const Seers& all = seers(page);
  page.say(
      tr("What improves accuracy? Here, small patches. Positions matter less than one would think: a drawn shape "
         "may be anywhere, and the set of its pieces says much about it. More data, more layers and more time help "
         "most: `qkv train --preset vit` passes 90 % on these pictures, and `vit-fashion` adds shifts and mirror "
         "images for Fashion-MNIST."));
  const auto row = [](const Seer& seer) -> std::vector<std::string> {
    return {std::to_string(seer.run->config().model.tokens(seer.run->data().facts.size)),
            grouped(static_cast<uint64_t>(seer.run->parameters().count())), percent(seer.end())};
  };
  named_table(page, {verbatim(""), tr("tokens"), tr("parameters"), tr("validation accuracy")},
              {{tr("class token"), row(all.cls)},
               {tr("mean of patches"), row(all.mean)},
               {tr("no positions"), row(all.placeless)},
               {tr("large patches"), row(all.coarse)}});
  page.claim(all.cls.end() > all.coarse.end() + 0.05,
             tr("Small patches are better than four large ones, which a linear layer has to recognise in one step."),
             tr("{small} with patches of {patch} x {patch}, {large} with {coarse} x {coarse}",
                "small"_a = percent(all.cls.end()), "patch"_a = kPatch, "large"_a = percent(all.coarse.end()),
                "coarse"_a = kSide / 2));
}

}  // namespace qkv::labs::vision
