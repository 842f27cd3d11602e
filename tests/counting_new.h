// Counts every call of operator new in the test program.
#pragma once

#include <cstdint>

namespace qkv::tests {
int64_t operator_new_calls();
}
