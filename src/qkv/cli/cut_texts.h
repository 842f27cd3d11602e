// The note about texts that a model reads only in part.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// left_out: tokens of every text that were cut off. Nothing is said if there are none.
void note_cut(std::span<const int64_t> left_out, const Global& global);

}  // namespace qkv::cli
