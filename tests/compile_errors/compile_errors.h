// What the programs beside this header train.
#include "qkv/nn/save.h"
#include "qkv/train/fit.h"

struct Model {
  qkv::Tensor weight = qkv::parameter(qkv::ones({1}));
  void visit(auto&& f) { f("weight", weight); }
};
