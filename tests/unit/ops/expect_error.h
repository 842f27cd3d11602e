// Checks the whole text of an error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "qkv/core/check.h"

namespace qkv::tests {

template <class Call>
void expect_error(Call&& call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "no error, expected: " << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.what(), message);
  }
}

}  // namespace qkv::tests
