// What Highway's own library would define: the page's engine has one set of vectors, chosen when it is compiled.
#include <hwy/aligned_allocator.h>
#include <hwy/targets.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {

int64_t SupportedTargets() { return HWY_WASM; }
void SetSupportedTargetsForTest(int64_t) {}
ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}
[[noreturn]] void Abort(const char* file, int line, const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::abort();
}

}  // namespace hwy
