// The error of a tensor that does not fit, for callers that answer it in their own words.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/check.h"

namespace QKV_API qkv {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace qkv
