// The interface between the program and the plug-in that knows MPI. The plug-in knows nothing else of qkv, and only
// standard types cross it. It moves bytes between ranks; what they mean, and the order of every sum, is decided here.
#pragma once

#include <cstddef>
#include <string>

#include "qkv/core/api.h"

namespace QKV_API qkv {

class Link {
 public:
  virtual ~Link() = default;  // leaves the job in an orderly way, unless abandoned
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host() const = 0;
  virtual std::string library() const = 0;  // "Open MPI 4.1.4"

  /// Begin to move bytes; the memory belongs to the link until the ticket is finished. Messages of one sender with one
  /// tag arrive in their order. One thread at a time.
  virtual int send(const void* data, size_t bytes, int to, int tag) = 0;
  virtual int receive(void* data, size_t bytes, int from, int tag) = 0;
  /// Writes up to `most` tickets that have finished since the last call, and returns their number. Never blocks.
  virtual size_t finished(int* tickets, size_t most) = 0;
  /// The job is lost: the destructor must not wait for anybody.
  virtual void abandon() = 0;
};

/// What the plug-in exports as "qkv_mpi_start": joins the job. Null with a reason if that fails.
using LinkStart = Link* (*)(std::string& reason);

}  // namespace qkv
