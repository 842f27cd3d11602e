// One thread: what core/parallel.cpp does where there is no oneTBB.
#include "qkv/core/parallel.h"

#include "qkv/core/check.h"

namespace qkv {

void set_threads(int count) { check(count >= 1 && count <= 1024, "[threads] expected 1 to 1024, got ", count); }
int threads() { return 1; }
std::string thread_library() { return "no threads"; }

SerialScope::SerialScope() : before_(true) {}
SerialScope::~SerialScope() = default;

// WebAssembly has no such mode: denormal results stay what they are.
void flush_denormals() {}

namespace detail {

bool parallel_worthwhile(int64_t, double) { return false; }
void run_blocks(int64_t blocks, void* context, void (*body)(void*, int64_t)) {
  for (int64_t b = 0; b < blocks; ++b) body(context, b);
}

}  // namespace detail
}  // namespace qkv
