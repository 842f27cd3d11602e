// Changes of attention that a request asks for.
#pragma once

#include "qkv/serve/call.h"

namespace qkv::serve {

/// The library cannot change attention yet: a request that asks for it is refused, not answered as if it had not.
inline void refuse_edits(const Fields& in) {
  if (in.has("edits") && !in.at("edits").empty())
    throw Refused(501, tr("edits of attention are not part of this version"));
}

[[noreturn]] inline void refuse_heads_off() {
  throw Refused(501, tr("switching heads off is not part of this version"));
}

}  // namespace qkv::serve
