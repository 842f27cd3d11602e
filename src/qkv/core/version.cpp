// The version, set by CMake.
#include "qkv/core/version.h"

namespace qkv {
const char* version() { return QKV_VERSION; }
}  // namespace qkv
