// A value that a configuration may leave open.
#pragma once

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The word for "open", and the value older files have in its place.
struct Open {
  const char* word;
  const char* before = nullptr;
};

}  // namespace qkv
