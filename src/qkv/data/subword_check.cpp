// The fields of a SentencePiece model (sentencepiece_model.proto), and every step that its tables of characters allow.
#include "qkv/data/subword_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"

namespace qkv {
namespace {

// Fields of a protocol buffer, one after the other. Stricter than protobuf, so that both agree on where each field
// lies: no groups, no numbers longer than they need be.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  /// Takes the next field; false at the end.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t tag = number();
    number_ = static_cast<uint32_t>(tag >> 3);
    check(tag <= UINT32_MAX && number_ > 0, name_, ": not a SentencePiece model, or damaged: no field at byte ", at_);
    is_bytes_ = (tag & 7) == 2;
    switch (tag & 7) {
      case 0:
        number();
        break;
      case 1:
        skip(8);
        break;
      case 2:
        content_ = skip(number());
        break;
      case 5:
        skip(4);
        break;
      default:
        fail(name_, ": not a SentencePiece model, or damaged: a field of kind ", tag & 7, " at byte ", at_);
    }
    return true;
  }

  /// Whether it is a field of that number that holds bytes: a text or fields of its own.
  bool holds(uint32_t number) const { return is_bytes_ && number_ == number; }
  std::string_view content() const { return content_; }

 private:
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      check(at_ < bytes_.size(), name_, ": not a SentencePiece model, or damaged: it is cut off");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) {
        check(byte != 0 || shift == 0, name_,
              ": not a SentencePiece model, or damaged: a number with needless zeros at byte ", at_);
        return value;
      }
    }
    fail(name_, ": not a SentencePiece model, or damaged: a number without an end at byte ", at_);
  }

  std::string_view skip(uint64_t count) {
    check(count <= bytes_.size() - at_, name_, ": not a SentencePiece model, or damaged: a field of ", grouped(count),
          " bytes with ", grouped(bytes_.size() - at_), " left");
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
  uint32_t number_ = 0;
  bool is_bytes_ = false;
  std::string_view content_;
};

// A precompiled table of characters: the size of a trie, the trie, the texts that its values point to, each with a NUL
// at its end.
//
// The trie is a double array as darts-clone walks it. From the node at `base` the byte c leads to the unit base ^ c if
// that has c as label; the node behind a unit i is i ^ offset(i), and where has_leaf(i), the unit there has a value.
// SentencePiece checks nothing of it.
class CharacterTable {
 public:
  CharacterTable(std::string_view blob, const std::string& name) : name_(name) {
    check(blob.size() <= limits::kCharacterTableBytes, name_, ": its table of characters has ", grouped(blob.size()),
          " bytes, expected at most ", grouped(limits::kCharacterTableBytes));
    uint32_t size = 0;
    if (blob.size() >= 4) std::memcpy(&size, blob.data(), 4);
    require(blob.size() > 4 && size > 0 && size % 4 == 0 && size < blob.size() - 4,
            "it has no trie of the size it says");
    units_.resize(size / 4);
    std::memcpy(units_.data(), blob.data() + 4, size);
    texts_ = blob.substr(4 + size);
    require(texts_.back() == '\0', "its last text has no end");
    require(find_invalid_utf8(texts_) == std::string_view::npos, "its texts are not UTF-8");
  }

  void check_all() {
    collect_children();
    visit_nodes();
    check_paths();
  }

 private:
  static uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
  static bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
  static bool is_value(uint32_t unit) { return unit >> 31; }
  static uint32_t label(uint32_t unit) { return unit & 0xff; }

  void require(bool ok, const char* what) const { check(ok, name_, ": its table of characters is damaged: ", what); }

  // The units that lead away from a node, in one list by node: child_[first_[base]] to child_[first_[base + 1] - 1].
  void collect_children() {
    const auto count = static_cast<uint32_t>(units_.size());
    const auto parent = [&](uint32_t i) { return i ^ label(units_[i]); };
    first_.assign(count + 1, 0);
    for (uint32_t i = 0; i < count; ++i)
      if (!is_value(units_[i]) && parent(i) < count) ++first_[parent(i) + 1];
    for (uint32_t i = 0; i < count; ++i) first_[i + 1] += first_[i];
    child_.resize(first_[count]);
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (uint32_t i = 0; i < count; ++i)
      if (!is_value(units_[i]) && parent(i) < count) child_[next[parent(i)]++] = i;
  }

  // The node behind a unit, of which any byte may be the next.
  uint32_t node_of(uint32_t unit_index) const {
    const uint32_t base = unit_index ^ offset(units_[unit_index]);
    require((base | 0xff) < units_.size(), "a step leads out of the trie");
    return base;
  }

  // All nodes that some text reaches, nearest first.
  void visit_nodes() {
    depth_.assign(units_.size(), UINT32_MAX);
    ways_.assign(units_.size(), 0);
    const uint32_t root = node_of(0);
    depth_[root] = 0;
    reached_ = {root};
    for (size_t at = 0; at < reached_.size(); ++at) {
      const uint32_t base = reached_[at];
      for (uint32_t k = first_[base]; k < first_[base + 1]; ++k) {
        const uint32_t unit = units_[child_[k]], next = node_of(child_[k]);
        ++ways_[next];
        if (depth_[next] == UINT32_MAX) depth_[next] = depth_[base] + 1, reached_.push_back(next);
        if (has_leaf(unit)) check_value(units_[next] & 0x7fffffff, depth_[base] + 1);
      }
    }
  }

  // A value is the beginning of a text that is not much longer than the `bytes` it stands for.
  void check_value(uint32_t value, uint64_t bytes) const {
    require(value < texts_.size() && (value == 0 || texts_[value - 1] == '\0'),
            "a value is not the beginning of a text");
    require(std::strlen(texts_.data() + value) <= limits::kGrowth * bytes,
            "a text is far longer than what it stands for");
  }

  // No way through the nodes is a circle, or passes more values than SentencePiece has room for.
  void check_paths() {
    constexpr uint32_t kRoom = 32;
    std::vector<uint32_t> values(units_.size(), 0), ready;
    if (ways_[reached_[0]] == 0) ready.push_back(reached_[0]);
    size_t done = 0;
    for (; done < ready.size(); ++done) {
      const uint32_t base = ready[done];
      for (uint32_t k = first_[base]; k < first_[base + 1]; ++k) {
        const uint32_t next = node_of(child_[k]);
        values[next] = std::max(values[next], values[base] + has_leaf(units_[child_[k]]));
        require(values[next] <= kRoom, "too many texts begin alike");
        if (--ways_[next] == 0) ready.push_back(next);
      }
    }
    require(done == reached_.size(), "it goes round in a circle");
  }

  const std::string& name_;
  std::vector<uint32_t> units_, first_, child_, depth_, ways_, reached_;
  std::string_view texts_;
};

constexpr uint32_t kPiece = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;  // fields of a model
constexpr uint32_t kPieceText = 1, kTable = 2, kUnknownSurface = 44;              // fields of those

void check_text(std::string_view text, const char* what, const std::string& name) {
  check(find_invalid_utf8(text) == std::string_view::npos, name, ": ", what, " is not UTF-8");
  check(text.find('\0') == std::string_view::npos, name, ": ", what, " has a NUL in it");
}

}  // namespace

void check_subword_model(std::string_view bytes, const std::string& name) {
  for (Fields model(bytes, name); model.next();) {
    for (const uint32_t part : {kPiece, kTrainer, kNormalizer, kDenormalizer}) {
      if (!model.holds(part)) continue;
      for (Fields fields(model.content(), name); fields.next();) {
        if (part == kPiece && fields.holds(kPieceText)) {
          check(!fields.content().empty(), name, ": a piece is empty");
          check(fields.content().size() <= limits::kPieceBytes, name, ": a piece has ",
                grouped(fields.content().size()), " bytes, expected at most ", limits::kPieceBytes);
          check_text(fields.content(), "a piece", name);
        } else if (part == kTrainer && fields.holds(kUnknownSurface)) {
          check_text(fields.content(), "the text of <unk>", name);
        } else if (part != kPiece && part != kTrainer && fields.holds(kTable) && !fields.content().empty()) {
          CharacterTable(fields.content(), name).check_all();
        }
      }
    }
  }
}

}  // namespace qkv
