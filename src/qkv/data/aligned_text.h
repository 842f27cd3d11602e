// AlignedText: a text that was changed, and where every byte of it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// Bytes begin to end - 1.
struct Range {
  uint32_t begin = 0, end = 0;
};

class AlignedText {
 public:
  AlignedText() = default;
  /// A part of a source, unchanged; it begins at byte `at` there.
  AlignedText(std::string_view text, uint32_t at) : text_(text), at_(at) {}

  const std::string& text() const { return text_; }
  /// The bytes of the source that these bytes come from.
  Range source(Range bytes) const;

  /// Changes bytes, not their number.
  std::string& bytes() { return text_; }

  // A changed text is built piece by piece, in order.
  void reserve(size_t bytes);
  /// Bytes that come from `source`.
  void append(std::string_view bytes, Range source);
  /// Bytes of another text, unchanged.
  void append(const AlignedText& other, Range bytes);

  AlignedText part(Range bytes) const;

 private:
  std::string text_;
  uint32_t at_ = 0;
  std::vector<Range> from_;  // of every byte; empty: byte i is byte at_ + i of the source
};

}  // namespace qkv
