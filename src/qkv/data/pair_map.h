// PairMap: a hash table from pairs of numbers to pairs of numbers, built once and read often.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace qkv {

class PairMap {
 public:
  struct Value {
    int32_t first = -1, second = -1;
  };

  explicit PairMap(size_t entries) : slots_(std::bit_ceil(entries * 2 + 8)) {}

  /// Keeps the value that a key has already. False if it had one. The keys are not negative.
  bool add(int32_t a, int32_t b, Value value) {
    Slot& slot = find_slot(key(a, b));
    if (slot.key != kEmpty) return false;
    slot = {key(a, b), value};
    return true;
  }
  /// Null if there is none.
  const Value* find(int32_t a, int32_t b) const {
    const Slot& slot = const_cast<PairMap*>(this)->find_slot(key(a, b));
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    Value value;
  };
  static uint64_t key(int32_t a, int32_t b) {
    return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
  }
  Slot& find_slot(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    size_t at = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 20) & mask;
    while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }

  std::vector<Slot> slots_;
};

}  // namespace qkv
