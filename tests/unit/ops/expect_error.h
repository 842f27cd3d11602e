// Checks the whole text of an error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/files.h"

namespace qkv::tests {

template <class Call>
void expect_error(Call&& call, const std::string& message) {
  EXPECT_EQ(qkv_test::error_of(call), message);
}

}  // namespace qkv::tests
