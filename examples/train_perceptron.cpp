// A perceptron learns which points lie inside a circle.
#include <cstdio>

#include "qkv/qkv.h"

using namespace qkv;

int main() {
  const Tensor x = uniform({500, 2}, Rng(1), -1, 1);
  Ids inside = Ids::empty({500});
  for (int i = 0; i < 500; ++i)
    inside.mutable_ptr()[i] = x.at({i, 0}) * x.at({i, 0}) + x.at({i, 1}) * x.at({i, 1}) < 0.5f;

  FeedForward model(2, 32, 2, Rng(2), Activation::tanh);  // 2 -> 32 -> 2 classes
  Adam adam;
  const double loss =
      fit(model, adam, {.epochs = 60, .rate = constant_rate(0.01f)}, supervised(model, x, inside, cross_entropy))
          .progress.epoch_loss;

  const Ids guess = argmax(model(x));
  int right = 0;
  for (int i = 0; i < 500; ++i) right += guess.ptr()[i] == inside.ptr()[i];
  std::printf("loss below 0.1: %s, more than 480 of 500 points right: %s\n", loss < 0.1 ? "yes" : "no",
              right > 480 ? "yes" : "no");
}
