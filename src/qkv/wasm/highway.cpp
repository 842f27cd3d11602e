// What Highway's own library would define: the page's engine has one set of vectors, chosen when it is compiled.
#include <hwy/aligned_allocator.h>
#include <hwy/targets.h>

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

namespace hwy {

int64_t SupportedTargets() { return HWY_WASM; }
void SetSupportedTargetsForTest(int64_t) {}
ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}
void Abort(const char*, int, const char* format, ...) {
  char line[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  throw std::runtime_error(line);
}

}  // namespace hwy
