// The version of the library.
#pragma once

namespace qkv {
const char* version();
}
