// Forces the Highway target and reads it back.
#include "qkv/kernels/target.h"

#include <algorithm>

#include "qkv/core/check.h"

// The matrix product has an AVX-512 kernel; the others then run theirs for AVX2.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/target.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
const char* NameHere() { return hwy::TargetName(HWY_TARGET); }
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(NameHere);

namespace {
// The targets of the CPU, read before any is forced (afterwards Highway reports the forced set).
int64_t cpu_targets() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

// With AVX-512 most kernels need their AVX2 form.
int64_t with_fallback(int64_t target) { return target == HWY_AVX3 ? target | HWY_AVX2 : target; }
}  // namespace

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  for (int64_t bits = cpu_targets(); bits; bits &= bits - 1)
    names.push_back(hwy::TargetName(bits & -bits));  // lower bit = better
  return names;
}

void force_target(const std::string& name) {
  const auto names = available_targets();
  if (name.empty()) return hwy::SetSupportedTargetsForTest(0);
  std::string list;
  for (const auto& n : names) list += (list.empty() ? "" : ", ") + n;
  require(std::find(names.begin(), names.end(), name) != names.end(),
          "[target] this program has no \"{name}\" kernels that this CPU can run; it has {list}", "name"_a = name,
          "list"_a = list);
  for (int64_t bits = cpu_targets(); bits; bits &= bits - 1)
    if (hwy::TargetName(bits & -bits) == name) hwy::SetSupportedTargetsForTest(with_fallback(bits & -bits));
  check(running_target() == name, "[target] asked for ", name, ", but ", running_target(), " runs");
}

std::string running_target() { return HWY_DYNAMIC_DISPATCH(NameHere)(); }

std::string rounding_target() {
  const std::string running = running_target();
  return running == hwy::TargetName(HWY_AVX3) ? hwy::TargetName(HWY_AVX2) : running;
}

std::string simd_library() { return text("Highway ", HWY_MAJOR, ".", HWY_MINOR, ".", HWY_PATCH); }

}  // namespace qkv::kernels
#endif
