// A small vision Transformer: images of four shapes in noise, cut into patches, read by a class token.
#include <cmath>
#include <cstdio>

#include "qkv/models/transformer_stack.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/train/fit.h"

using namespace qkv;

struct Vit {
  Linear embed;
  Tensor cls, positions;  // (1, 1, width), (1, 17, width)
  TransformerStack stack;
  Linear head;

  Vit(const TransformerConfig& c, const Rng& rng)
      : embed(16, c.hidden, rng.at("embed")),
        cls(parameter(normal({1, 1, c.hidden}, rng.at("cls"), 0, 0.02f))),
        positions(parameter(normal({1, 17, c.hidden}, rng.at("positions"), 0, 0.02f))),
        stack(c, c.layers, Cross::no, rng.at("stack")),
        head(c.hidden, 4, rng.at("head")) {}
  Tensor operator()(const Tensor& images, const Run& run) const {  // (B, 1, 16, 16) -> (B, 4)
    const Tensor x = concat({tile(cls, {images.size(0), 1, 1}), embed(patches(images, 4))}, 1) + positions;
    const Tensor y = stack(x, Mask::none(), {}, run);
    return head(reshape(slice(y, 1, 0, 1), {y.size(0), y.size(2)}));
  }
  void visit(auto&& f) {
    f("embed", embed), f("cls", cls), f("positions", positions), f("stack", stack), f("head", head);
  }
};

struct Batch {
  Tensor x;
  Ids y;
};

// Rings, squares, crosses and diagonal crosses, each somewhere else.
Batch images(int64_t rows, const Rng& rng) {
  Batch b{normal({rows, 1, 16, 16}, rng.at("noise"), 0, 0.3f), Ids::empty({rows})};
  for (int64_t i = 0; i < rows * 256; ++i) {
    const Rng r = rng.at(i / 256);
    const int shape = int(r.below(4, 0)), dx = std::abs(int(i % 16) - 4 - int(r.below(8, 1))),
              dy = std::abs(int(i / 16 % 16) - 4 - int(r.below(8, 2)));
    const bool on[] = {std::abs(dx * dx + dy * dy - 9) <= 3, std::max(dx, dy) == 3, dx * dy == 0 && dx + dy <= 3,
                       dx == dy && dx <= 3};
    b.y.mutable_ptr()[i / 256] = shape;
    b.x.mutable_ptr()[i] += on[shape];
  }
  return b;
}

int main() {
  Vit model({.hidden = 48, .ffn = 96, .layers = 2, .dropout = 0, .norm = NormPlace::pre}, Rng(1));
  const Batch test = images(500, Rng(77));
  Adam adam;
  fit(model, adam, {.steps = 300, .rate = cosine_rate(3e-3f, 300, 20), .clip = 1}, [&](int64_t step, const Run& run) {
    const Batch b = images(64, Rng(5).at(step));
    return cross_entropy(model(b.x, run), b.y);
  });
  const Ids guess = argmax(model(test.x, {}));
  int right = 0;
  for (int i = 0; i < 500; ++i) right += guess.ptr()[i] == test.y.ptr()[i];
  std::printf("%ld parameters, %s of 500 new images right\n", long(count_parameters(model)),
              right > 450 ? "more than 450" : std::to_string(right).c_str());
}
