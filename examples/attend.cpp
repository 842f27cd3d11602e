// Attention with its derivatives: the weights that four queries give to the keys they may see, and a gradient.
#include <qkv/qkv.h>

#include <iostream>
using namespace qkv;

int main() {
  const Tensor q = parameter(normal({1, 2, 4, 8}, Rng(1)));  // batch, heads, length, width
  const Tensor k = normal({1, 2, 4, 8}, Rng(2)), v = normal({1, 2, 4, 8}, Rng(3));

  Tape tape;  // records everything in its scope
  const auto [output, weights] = attend(ScaledDot{}, q, k, v, Mask::causal());
  std::cout << weights.head(0, 1) << '\n';  // what the queries of head 1 look at: (4, 4)

  tape.backward(sum(output));
  std::cout << tape.grad(q).shape().str() << '\n';  // gradients belong to the tape
}
