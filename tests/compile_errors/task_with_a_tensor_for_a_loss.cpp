// expected: task.loss(batch, row, row, run)
#include "compile_errors.h"

struct Task {
  const Model& model;
  int64_t batches() const { return 1; }
  int batch(int64_t, int64_t) const { return 0; }
  int64_t rows(int) const { return 1; }
  qkv::Tensor loss(int, int64_t, int64_t, const qkv::Run&) const { return model.weight; }
};

int main() {
  Model model;
  qkv::Adam adam;
  qkv::fit(model, adam, {}, Task{model});
}
