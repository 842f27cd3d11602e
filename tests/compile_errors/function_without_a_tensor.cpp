// expected: loss(number, run)
#include "compile_errors.h"

int main() {
  Model model;
  qkv::Adam adam;
  qkv::fit(model, adam, {.steps = 3}, [&](int64_t, const qkv::Run&) { return 0.5; });
}
