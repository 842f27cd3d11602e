// Forcing a kernel target: the forced one runs, and one that the CPU lacks is refused before anything changes.
#include "qkv/kernels/target.h"

#include <gtest/gtest.h>

#include "qkv/core/check.h"

namespace qkv::kernels {

TEST(Target, TheForcedOneRuns) {
  const auto targets = available_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(running_target(), targets.front()) << "unless forced, the best one runs";
  for (const std::string& target : targets) {
    force_target(target);
    EXPECT_EQ(running_target(), target);
  }
  force_target("");
  EXPECT_EQ(running_target(), targets.front());
}

TEST(Target, OneThatTheProgramOrTheCpuLacksIsRefusedAndNothingChanges) {
  const std::string before = running_target();
  for (const char* name : {"AVX3_DL", "SSE4", "NEON", "SVE", "avx2", "quantum"}) {
    try {
      force_target(name);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).find(std::string("[target] this program has no \"") + name +
                                           "\" kernels that this CPU can run; it has "),
                0u)
          << e.what();
    }
    EXPECT_EQ(running_target(), before);
  }
}

}  // namespace qkv::kernels
