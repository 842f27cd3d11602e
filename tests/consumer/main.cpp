// An op of the consumer's own with its derivative, a Tape, and a scorer of its own inside a Transformer, from the one
// header that has it all.
#include <qkv/qkv.h>

#include <cstdio>

using qkv::Pull;
using qkv::Tensor;

// y = x^2 element by element.   dx = 2 x dy
static Tensor squared(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) y.mutable_ptr()[i] = x.ptr()[i] * x.ptr()[i];
  qkv::record("squared", y, {&x}, [x](Pull& p) {
    Tensor dx = Tensor::empty(x.shape());
    for (int64_t i = 0; i < x.numel(); ++i) dx.mutable_ptr()[i] = 2 * x.ptr()[i] * p.dy().ptr()[i];
    p.give(0, dx);
  });
  return y;
}

// a(q, k) = -|q - k|, summed over the elements.
struct Manhattan {
  Tensor scores(const Tensor& q, const Tensor& k) const { return -sum(abs(unsqueeze(q, 3) - unsqueeze(k, 2)), -1); }
};

static void differentiate() {
  Tensor w = qkv::parameter(Tensor({2, 2}, {1, 2, 3, 4}));
  qkv::Tape tape;
  Tensor y = squared(squared(w));
  tape.backward(y, qkv::ones(y.shape()));
  std::printf("shape %s\n", y.shape().str().c_str());
  std::printf("y ");
  for (float v : y.data()) std::printf(" %g", v);
  std::printf("\ndw");
  const Tensor dw = tape.grad(w);
  for (float v : dw.data()) std::printf(" %g", v);
  std::printf("\n");
}

int main() {
  differentiate();
  const qkv::Transformer model(
      {.hidden = 8,
       .ffn = 16,
       .heads = 2,
       .own_scorer = [](const qkv::ScorerSizes&, const qkv::Rng&) { return qkv::any_scorer(Manhattan{}); }},
      {9, 9}, qkv::Rng(1));
  for (const auto& [path, weights] :
       attention_of(model, qkv::Ids({1, 3}, {4, 5, 6}), qkv::Ids{}, qkv::Ids({1, 2}, {1, 7})))
    std::printf("%s %s\n", path.c_str(), weights.shape().str().c_str());
  try {
    Tensor({3}, {1, 2});
  } catch (const qkv::Error& e) {
    std::printf("%s\n", e.what());
  }
}
