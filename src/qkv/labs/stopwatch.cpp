// A thread's processor clock, which the standard library does not have.
#include "qkv/labs/stopwatch.h"

#include <time.h>

namespace qkv::labs {

double thread_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace qkv::labs
