// Fused attention with dot and distance scores: the kernels of the -inl.h files, dispatched.
#include "qkv/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/attention_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

int64_t AttentionForward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse) {
  return attn::Forward(call, q, k, v, out, lse);
}
void AttentionBackward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, ConstHeads out,
                       const float* lse, ConstHeads dout, const AttentionGradients& gradients) {
  attn::Backward({call, q, k, v, out, lse, dout, gradients});
}
void AttentionWeights(const AttentionCall& call, ConstHeads q, ConstHeads k, const float* lse, int64_t b, int64_t h,
                      int64_t i, float* weights) {
  attn::Weights(call, q, k, lse, b, h, i, weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(AttentionForward);
HWY_EXPORT(AttentionBackward);
HWY_EXPORT(AttentionWeights);

int64_t attention_forward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse) {
  return HWY_DYNAMIC_DISPATCH(AttentionForward)(call, q, k, v, out, lse);
}

void attention_backward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, ConstHeads out,
                        const float* lse, ConstHeads dout, const AttentionGradients& gradients) {
  HWY_DYNAMIC_DISPATCH(AttentionBackward)(call, q, k, v, out, lse, dout, gradients);
}

void attention_weights(const AttentionCall& call, ConstHeads q, ConstHeads k, const float* lse, int64_t b, int64_t h,
                       int64_t i, float* weights) {
  HWY_DYNAMIC_DISPATCH(AttentionWeights)(call, q, k, lse, b, h, i, weights);
}

}  // namespace qkv::kernels
#endif
