// The buffer that Scratch uses.
#include "qkv/kernels/scratch.h"

#include <memory>
#include <new>

namespace qkv::kernels {
namespace {

constexpr int64_t kLine = 16;  // floats per cache line
constexpr std::align_val_t kAlignment{64};

struct Free {
  void operator()(float* p) const { ::operator delete(p, kAlignment); }
};
struct Buffer {
  std::unique_ptr<float, Free> data;
  int64_t size = 0;
};
thread_local Buffer buffer;

}  // namespace

Scratch::Scratch(int64_t floats, int pieces) {
  const int64_t size = floats + pieces * kLine;
  if (buffer.size < size) {
    buffer.data.reset();
    buffer.size = 0;
    buffer.data.reset(static_cast<float*>(::operator new(static_cast<size_t>(size) * sizeof(float), kAlignment)));
    buffer.size = size;
  }
  next_ = buffer.data.get();
}

float* Scratch::take(int64_t floats) {
  float* piece = next_;
  next_ += (floats + kLine - 1) / kLine * kLine;
  return piece;
}

}  // namespace qkv::kernels
