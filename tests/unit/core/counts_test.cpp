// Numbers with what they count.
#include "qkv/core/counts.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(Counts, OneIsSingularAndAllOthersArePlural) {
  EXPECT_EQ(token_count(0).in(Language::en), "0 tokens");
  EXPECT_EQ(token_count(1).in(Language::en), "1 token");
  EXPECT_EQ(token_count(2000).in(Language::en), "2,000 tokens");
  EXPECT_EQ(token_count(1).in(Language::zh), "1 个词元");
  EXPECT_EQ(update_count(1).in(Language::en), "1 update");
  EXPECT_EQ(line_count(3).in(Language::zh), "3 行");
}

}  // namespace
}  // namespace qkv
