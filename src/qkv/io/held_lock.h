// Looking at a lock (file_lock.h) without taking it.
#pragma once

#include <string>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Whether somebody holds the lock at that path. A file that a killed process left behind is not held.
bool lock_is_held(const std::string& path);

}  // namespace qkv
