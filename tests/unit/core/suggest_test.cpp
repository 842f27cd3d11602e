// Suggestions for unknown words.
#include "qkv/core/suggest.h"

#include <gtest/gtest.h>

#include <vector>

using namespace qkv;

TEST(Suggest, CountsEditsAndSwapsOfNeighbours) {
  EXPECT_EQ(edit_distance("info", "info"), 0);
  EXPECT_EQ(edit_distance("inof", "info"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Suggest, NamesTheNearestWordOrNone) {
  const std::vector<std::string> known = {"info", "train", "translate", "tour"};
  EXPECT_EQ(nearest_word("inof", known), "info");
  EXPECT_EQ(nearest_word("trian", known), "train");
  EXPECT_EQ(nearest_word("transl", known), "translate");
  EXPECT_EQ(nearest_word("xyzzy", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word(std::string(1000, 'a'), known), "");
}
