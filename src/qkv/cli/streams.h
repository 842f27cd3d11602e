// The standard streams: descriptors 0 to 2 are open, and standard error never fails.
#pragma once

namespace qkv::cli {

/// Call this first. A descriptor 0 to 2 that the parent closed is opened on /dev/null, so that no other file gets its
/// number; using it still fails like a closed one. Text that cannot be written to standard error is dropped: a full
/// disk or a closed pipe does not end the program.
void secure_streams();

}  // namespace qkv::cli
