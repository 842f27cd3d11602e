// Runs forward without a tape, backward with its own.
#include "qkv/ops/recompute.h"

#include "qkv/core/check.h"
#include "qkv/tensor/tape.h"

namespace qkv {

// y = f(x...).   backward: y' = f(x'...) on a new tape whose leaves are x', then dx and the parameters' gradients from
// there
Tensor recomputed(std::vector<Tensor> inputs, std::vector<Tensor> parameters, Recomputable f) {
  std::vector<Tensor> kept;
  for (const Tensor& x : inputs) kept.push_back(x.detached());
  Tensor y;
  {
    const TapePause pause;
    y = f(kept, Pass::first);
  }
  std::vector<const Tensor*> all;
  for (const Tensor& x : inputs) all.push_back(&x);
  for (const Tensor& p : parameters) all.push_back(&p);
  Tensor* outputs[] = {&y};
  record("recomputed", outputs, std::span<const Tensor* const>(all),
         [kept = std::move(kept), parameters, f = std::move(f), shape = y.shape()](Pull& p) {
           std::vector<Tensor> leaves;
           for (const Tensor& x : kept) leaves.push_back(x.defined() ? parameter(x) : x);
           Tape tape;
           const Tensor again = f(leaves, Pass::again);
           check(again.shape() == shape, "[recomputed] the function gave ", shape, " and then ", again.shape());
           tape.backward(again, p.dy());
           int i = 0;
           for (const auto& list : {std::span<const Tensor>(leaves), std::span<const Tensor>(parameters)})
             for (const Tensor& leaf : list) {
               if (p.wants(i)) p.give(i, tape.grad(leaf));
               ++i;
             }
         });
  return y;
}

}  // namespace qkv
