// The standard streams: descriptors 0 to 2 are there, and standard error never fails.
#pragma once

namespace qkv::cli {

/// Called first of all. A descriptor 0 to 2 that the parent closed is opened on /dev/null, so that no file of ours gets
/// its number; using it still fails as a closed one does. Whatever cannot be written to standard error is dropped: a
/// full disk or a reader that went away ends no work.
void secure_streams();

}  // namespace qkv::cli
