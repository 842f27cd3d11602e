// The English-French corpus of qkv data.
#pragma once

#include <optional>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// The options of `qkv data en-fr` and what it writes.
class DataEnFr {
 public:
  void bind(Options& options);
  /// True when one of its options was given: they belong to en-fr alone.
  bool given() const { return size_ || alignments_ || split_ || reverse_; }
  /// Pairs as tab-separated lines to `output` or standard output, alignments and parts of the split to their files.
  void run(const Global& global, const std::optional<std::string>& output) const;

 private:
  std::optional<int64_t> size_;
  std::optional<std::string> alignments_, split_;
  bool reverse_ = false;
};

}  // namespace qkv::cli
