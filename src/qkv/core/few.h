// A short list stored in place: at most eight elements, no heap.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>

#include "qkv/core/api.h"
#include "qkv/core/check.h"

namespace QKV_API qkv {

template <class T>
class Few {
 public:
  static constexpr size_t kMost = 8;

  Few() = default;
  Few(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }

  void push_back(T item) {
    check(size_ < kMost, "[few] at most ", kMost, " elements");
    items_[size_++] = std::move(item);
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  const T& back() const { return items_[size_ - 1]; }
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }
  operator std::span<const T>() const { return {items_.data(), size_}; }

 private:
  std::array<T, kMost> items_{};
  size_t size_ = 0;
};

}  // namespace qkv
