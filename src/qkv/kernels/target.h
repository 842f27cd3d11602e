// Which instruction set the kernels run on: the best the CPU has, or a forced one.
#pragma once

#include <string>
#include <vector>

namespace qkv::kernels {

/// Names of the compiled-in targets that this CPU supports, best first: "AVX3", "AVX2", "SSSE3". AVX3 is AVX-512: its
/// matrix product, and the AVX2 kernels for the rest.
std::vector<std::string> available_targets();

/// Forces every kernel to one target; "" goes back to the best one. Process-wide. A target that the CPU lacks or that
/// is not compiled in is an error and changes nothing.
void force_target(const std::string& name);

/// The target that a dispatched kernel actually runs on, as reported by that kernel.
std::string running_target();

/// The target whose bits the kernels give: AVX2 for AVX3, which gives the same.
std::string rounding_target();

/// "Highway 1.0.3".
std::string simd_library();

}  // namespace qkv::kernels
