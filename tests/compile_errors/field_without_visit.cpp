// expected: visit() names a field that is neither a Tensor, nor a module, nor a std::vector or std::optional of them
#include "compile_errors.h"

struct Counter {
  int64_t steps = 0;
  void visit(auto&& f) { f("steps", steps); }
};

int main() {
  Counter model;
  qkv::count_parameters(model);
}
