// Which instruction set the kernels run on: the best the CPU has, or a forced one.
#pragma once

#include <string>
#include <vector>

namespace qkv::kernels {

/// Names of the targets compiled in that this CPU has, best first: "AVX2", "SSSE3".
std::vector<std::string> available_targets();

/// Forces every kernel to one target, or "" for the best one again. Process-wide; a target
/// the CPU lacks, or one that is not compiled in, is an error and changes nothing.
void force_target(const std::string& name);

/// The target that a dispatched kernel really runs on, as that kernel itself reports it.
std::string running_target();

/// "Highway 1.0.3".
std::string simd_library();

}  // namespace qkv::kernels
