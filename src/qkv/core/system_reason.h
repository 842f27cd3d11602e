// Reasons of the operating system, in the user's language.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// What strerror() says about an error number. Uncommon reasons are in English only.
Text system_reason(int error);

}  // namespace qkv
