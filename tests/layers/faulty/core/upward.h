// A lower layer that reaches up.
#include <vector>

#include "qkv/core/check.h"
#include "qkv/ops/matmul.h"
