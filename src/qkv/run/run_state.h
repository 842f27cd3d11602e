// What can be seen of a run from outside, while another process may be training it.
#pragma once

#include <string>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The file that a training process locks, within the folder.
inline constexpr const char* kRunLock = "train.lock";

/// Whether a process is training in the folder now.
bool is_training(const std::string& folder);

}  // namespace qkv
