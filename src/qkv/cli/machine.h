// The machine that the program runs on.
#pragma once

#include <string>

namespace qkv::cli {

/// "Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz", or the architecture.
std::string cpu_name();

}  // namespace qkv::cli
