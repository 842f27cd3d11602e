// A model of your own: trained by steps, saved, loaded into a new one, and refused where it does not fit.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "qkv/qkv.h"

using namespace qkv;

// y = B tanh(A x) + x, with dropout while training.
struct Residual {
  Linear a, b;

  Residual(int64_t width, const Rng& rng) : a(width, 16, rng.at("a")), b(16, width, rng.at("b")) {}
  Tensor operator()(const Tensor& x, const Run& run) const {
    return b(dropout(a(x, Activation::tanh), 0.05f, run.at("dropout"))) + x;
  }
  void visit(auto&& f) {
    f("a", a);
    f("b", b);
  }
};

int main() {
  const Tensor x = uniform({64, 2}, Rng(1), -1, 1), y = 1 - x * x;
  Residual model(2, Rng(2));
  Adam adam;
  fit(model, adam,
      {.epochs = 3,
       .steps = 300,
       .rate = cosine_rate(0.02f, 300),
       .on_epoch =
           [](const Progress& p) {
             std::printf("step %ld of %ld: loss below 0.1: %s\n", long(p.step), long(p.steps),
                         p.epoch_loss < 0.1 ? "yes" : "no");
           }},
      [&](int64_t, const Run& run) { return squared_error(model(x, run), y); });

  const std::string file = std::filesystem::temp_directory_path() / "qkv_residual.safetensors";
  save(model, file, {{"steps", "300"}});
  Residual loaded(2, Rng(99));
  std::printf("trained for %s steps\n", load(loaded, file)["steps"].c_str());
  const Tensor differences = model(x, {}) - loaded(x, {});
  std::printf("loaded: largest difference %g\n", double(squared_error(differences, zeros({64, 2})).item()));

  try {
    Residual wider(3, Rng(3));
    load(wider, file);
  } catch (const Error& e) {
    std::cout << std::string(e.what()).substr(file.size() + 2) << "\n";
  }
  std::cout << "x = " << Tensor({2, 2}, {1, 2, 3, 4}) / 3 << "\n";
  std::filesystem::remove(file);
}
