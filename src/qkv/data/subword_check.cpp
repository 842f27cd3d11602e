// The fields of a SentencePiece model (sentencepiece_model.proto), and every step that its character tables allow.
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

// The fields of a protocol buffer in order. Stricter than protobuf, so that both agree on the position of each field:
// no groups, no numbers longer than necessary.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  /// Reads the next field; false at the end.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t tag = number();
    number_ = static_cast<uint32_t>(tag >> 3);
    require(tag <= UINT32_MAX && number_ > 0, "{name}: not a SentencePiece model, or damaged: no field at byte {at}",
            "name"_a = name_, "at"_a = at_);
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
        refuse("{name}: not a SentencePiece model, or damaged: a field of kind {kind} at byte {at}", "name"_a = name_,
               "kind"_a = tag & 7, "at"_a = at_);
    }
    return true;
  }

  /// Whether it is field `number` and holds bytes: text or nested fields.
  bool holds(uint32_t number) const { return is_bytes_ && number_ == number; }
  std::string_view content() const { return content_; }

 private:
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      require(at_ < bytes_.size(), "{name}: not a SentencePiece model, or damaged: it is cut off", "name"_a = name_);
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) {
        require(byte != 0 || shift == 0,
                "{name}: not a SentencePiece model, or damaged: a number with redundant zeros at byte {at}",
                "name"_a = name_, "at"_a = at_);
        return value;
      }
    }
    refuse("{name}: not a SentencePiece model, or damaged: an unterminated number at byte {at}", "name"_a = name_,
           "at"_a = at_);
  }

  std::string_view skip(uint64_t count) {
    require(count <= bytes_.size() - at_,
            "{name}: not a SentencePiece model, or damaged: a field of {count} bytes with {left} left",
            "name"_a = name_, "count"_a = grouped(count), "left"_a = grouped(bytes_.size() - at_));
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

// A precompiled character table: the size of a trie, the trie, and the NUL-terminated texts that its values point to.
//
// The trie is a double array in the format of darts-clone. From the node at `base`, byte c leads to unit base ^ c if
// that has label c; unit i leads to the node i ^ offset(i), and if has_leaf(i), the unit there holds a value.
// SentencePiece checks none of this.
class CharacterTable {
 public:
  CharacterTable(std::string_view blob, const std::string& name) : name_(name) {
    require(blob.size() <= limits::kCharacterTableBytes,
            "{name}: its table of characters has {size} bytes, expected at most {most}", "name"_a = name_,
            "size"_a = grouped(blob.size()), "most"_a = grouped(limits::kCharacterTableBytes));
    uint32_t size = 0;
    if (blob.size() >= 4) std::memcpy(&size, blob.data(), 4);
    if (blob.size() <= 4 || size == 0 || size % 4 != 0 || size >= blob.size() - 4)
      refuse_table(tr("its trie does not have the stated size"));
    units_.resize(size / 4);
    std::memcpy(units_.data(), blob.data() + 4, size);
    texts_ = blob.substr(4 + size);
    if (texts_.back() != '\0') refuse_table(tr("its last text is not terminated"));
    if (find_invalid_utf8(texts_) != std::string_view::npos) refuse_table(tr("its texts are not UTF-8"));
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

  [[noreturn]] void refuse_table(const Text& why) const {
    refuse("{name}: its table of characters is damaged: {why}", "name"_a = name_, "why"_a = why);
  }

  // The units that lead away from each node, in one list: child_[first_[base]] to child_[first_[base + 1] - 1].
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

  // The node that a unit leads to; any byte may come next.
  uint32_t node_of(uint32_t unit_index) const {
    const uint32_t base = unit_index ^ offset(units_[unit_index]);
    if ((base | 0xff) >= units_.size()) refuse_table(tr("a step leads out of the trie"));
    return base;
  }

  // Finds all nodes that some text can reach, nearest first.
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
        if (depth_[next] == UINT32_MAX) {
          depth_[next] = depth_[base] + 1;
          reached_.push_back(next);
        }
        if (has_leaf(unit)) check_value(units_[next] & 0x7fffffff, depth_[base] + 1);
      }
    }
  }

  // A value must be the beginning of a text that is not much longer than the `bytes` it replaces.
  void check_value(uint32_t value, uint64_t bytes) const {
    if (value >= texts_.size() || (value > 0 && texts_[value - 1] != '\0'))
      refuse_table(tr("a value is not the beginning of a text"));
    if (std::strlen(texts_.data() + value) > limits::kGrowth * bytes)
      refuse_table(tr("a text is far longer than the characters it replaces"));
  }

  // No path through the nodes may have a cycle, or pass more values than SentencePiece has room for.
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
        if (values[next] > kRoom) refuse_table(tr("too many texts share a prefix"));
        if (--ways_[next] == 0) ready.push_back(next);
      }
    }
    if (done != reached_.size()) refuse_table(tr("it has a cycle"));
  }

  const std::string& name_;
  std::vector<uint32_t> units_, first_, child_, depth_, ways_, reached_;
  std::string_view texts_;
};

constexpr uint32_t kPiece = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;  // fields of a model
constexpr uint32_t kPieceText = 1, kTable = 2, kUnknownSurface = 44;              // fields of these

void check_text(std::string_view text, const Text& what, const std::string& name) {
  require(find_invalid_utf8(text) == std::string_view::npos, "{name}: {what} is not UTF-8", "name"_a = name,
          "what"_a = what);
  require(text.find('\0') == std::string_view::npos, "{name}: {what} has a NUL in it", "name"_a = name,
          "what"_a = what);
}

}  // namespace

void check_subword_model(std::string_view bytes, const std::string& name) {
  for (Fields model(bytes, name); model.next();) {
    for (const uint32_t part : {kPiece, kTrainer, kNormalizer, kDenormalizer}) {
      if (!model.holds(part)) continue;
      for (Fields fields(model.content(), name); fields.next();) {
        if (part == kPiece && fields.holds(kPieceText)) {
          require(!fields.content().empty(), "{name}: a piece is empty", "name"_a = name);
          require(fields.content().size() <= limits::kPieceBytes,
                  "{name}: a piece has {size} bytes, expected at most {most}", "name"_a = name,
                  "size"_a = grouped(fields.content().size()), "most"_a = limits::kPieceBytes);
          check_text(fields.content(), tr("a piece"), name);
        } else if (part == kTrainer && fields.holds(kUnknownSurface)) {
          check_text(fields.content(), tr("the text of <unk>"), name);
        } else if (part != kPiece && part != kTrainer && fields.holds(kTable) && !fields.content().empty()) {
          CharacterTable(fields.content(), name).check_all();
        }
      }
    }
  }
}

}  // namespace qkv
