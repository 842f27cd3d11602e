// Gzip files: read part by part, written as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/io/file.h"

namespace QKV_API qkv {

/// Whether the file begins like a gzip file.
bool is_gzip(const InputFile& file);

/// The unpacked bytes of all members of a gzip file, from beginning to end. The file must outlive it.
class GzipStream {
 public:
  explicit GzipStream(const InputFile& file);
  ~GzipStream();
  /// Fills `out` and returns how many bytes there were: fewer only at the end. A file that is cut off or damaged is an
  /// error.
  size_t read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A gzip file of the bytes; the same bytes give the same file.
std::string gzipped(std::string_view bytes);

}  // namespace qkv
