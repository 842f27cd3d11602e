// A value that a configuration may leave open.
#pragma once

namespace qkv {

/// The word for it, and what older files have in its place.
struct Open {
  const char* word;
  const char* before = nullptr;
};

}  // namespace qkv
