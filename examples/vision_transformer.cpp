// A small vision Transformer: images of four shapes in noise, cut into patches, read by a class token.
#include <cstdio>

#include "qkv/qkv.h"

using namespace qkv;

const TransformerConfig kConfig{.hidden = 48, .ffn = 96, .layers = 2, .dropout = 0, .norm = NormPlace::pre};

struct Vit {
  Linear embed{16, 48, Rng(1).at("embed")};
  Tensor cls = parameter(normal({1, 1, 48}, Rng(1).at("cls"), 0, 0.02f));
  Tensor positions = parameter(normal({1, 17, 48}, Rng(1).at("positions"), 0, 0.02f));
  TransformerStack stack{kConfig, 2, Cross::no, Rng(1).at("stack")};
  Linear head{48, 4, Rng(1).at("head")};

  Tensor operator()(const Tensor& images, const Run& run) const {  // (B, 1, 16, 16) -> (B, 4)
    const Tensor x = concat({tile(cls, {images.size(0), 1, 1}), embed(patches(images, 4))}, 1) + positions;
    return head(reshape(slice(stack(x, Mask::none(), {}, run), 1, 0, 1), {images.size(0), 48}));
  }
  void visit(auto&& f) {
    f("embed", embed);
    f("cls", cls);
    f("positions", positions);
    f("stack", stack);
    f("head", head);
  }
};

// Rings, squares, crosses and diagonal crosses, each somewhere else, and which of them it is.
std::pair<Tensor, Ids> images(int64_t rows, const Rng& rng) {
  Tensor x = normal({rows, 1, 16, 16}, rng.at("noise"), 0, 0.3f);
  Ids y = Ids::empty({rows});
  for (int64_t i = 0; i < rows * 256; ++i) {
    const Rng r = rng.at(i / 256);
    const int shape = int(r.below(4, 0)), dx = std::abs(int(i % 16) - 4 - int(r.below(8, 1))),
              dy = std::abs(int(i / 16 % 16) - 4 - int(r.below(8, 2)));
    const bool on[] = {std::abs(dx * dx + dy * dy - 9) <= 3, std::max(dx, dy) == 3, dx * dy == 0 && dx + dy <= 3,
                       dx == dy && dx <= 3};
    y.mutable_ptr()[i / 256] = shape;
    x.mutable_ptr()[i] += on[shape];
  }
  return {x, y};
}

int main(int argc, char** argv) {
  Vit model;
  Adam adam;
  fit(model, adam, {.steps = 300, .rate = cosine_rate(3e-3f, 300, 20), .clip = 1}, [&](int64_t step, const Run& run) {
    const auto [x, y] = images(64, Rng(5).at(step));
    return cross_entropy(model(x, run), y);
  });
  const auto [x, y] = images(500, Rng(77));
  const Ids guess = argmax(model(x, {}));
  int right = 0;
  for (int i = 0; i < 500; ++i) right += guess.ptr()[i] == y.ptr()[i];
  std::printf("more than 450 of 500 new images right: %s\n", right > 450 ? "yes" : "no");
  const Tensor seen = slice(attention_of(model, slice(x, 0, 0, 1)).at("1.self").head(0, 0), 0, 0, 1);
  if (argc > 1)
    save(heatmaps(reshape(slice(seen, 1, 1, 17), {4, 4}), "x", "y", {"what the class token sees"}), argv[1]);
}
