// expected: module.visit(f)
#include "compile_errors.h"

struct Blind {
  qkv::Tensor weight;
};

int main() {
  Blind model;
  qkv::load(model, "model.safetensors");
}
