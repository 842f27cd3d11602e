// Sources of bytes, kept only where a text differs from its source.
#include "qkv/data/aligned_text.h"

namespace qkv {

Range AlignedText::source(Range bytes) const {
  if (from_.empty()) return {at_ + bytes.begin, at_ + bytes.end};
  if (bytes.begin < bytes.end) return {from_[bytes.begin].begin, from_[bytes.end - 1].end};
  const uint32_t at = bytes.begin < from_.size() ? from_[bytes.begin].begin : from_.back().end;
  return {at, at};
}

void AlignedText::reserve(size_t bytes) {
  text_.reserve(bytes);
  from_.reserve(bytes);
}

void AlignedText::append(std::string_view bytes, Range source) {
  text_ += bytes;
  from_.insert(from_.end(), bytes.size(), source);
}

void AlignedText::append(const AlignedText& other, Range bytes) {
  text_.append(other.text_, bytes.begin, bytes.end - bytes.begin);
  for (uint32_t i = bytes.begin; i < bytes.end; ++i)
    from_.push_back(other.from_.empty() ? Range{other.at_ + i, other.at_ + i + 1} : other.from_[i]);
}

AlignedText AlignedText::part(Range bytes) const {
  AlignedText out(std::string_view(text_).substr(bytes.begin, bytes.end - bytes.begin), at_ + bytes.begin);
  if (!from_.empty()) out.from_.assign(from_.begin() + bytes.begin, from_.begin() + bytes.end);
  return out;
}

}  // namespace qkv
