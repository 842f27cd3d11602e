// The version of the library.
#pragma once

#include "qkv/core/api.h"

namespace QKV_API qkv {
const char* version();
}
