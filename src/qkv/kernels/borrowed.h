// Working memory that a call keeps while its parallel regions run.
#pragma once

#include <utility>
#include <vector>

namespace qkv::kernels {

/// A vector that belongs to one call, taken from a store of the calling thread and returned to it: no allocation once
/// warm. Its initial contents are left over from earlier use. A thread that waits for the end of a region may run
/// blocks of other callers, possibly through the same code, so memory held across a region must not be a static of the
/// thread.
template <class T>
class Borrowed {
 public:
  Borrowed() {
    if (store().empty()) return;
    own_ = std::move(store().back());
    store().pop_back();
  }
  ~Borrowed() {
    try {
      store().push_back(std::move(own_));
    } catch (...) {  // no memory to keep it: it is freed
    }
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  std::vector<T>* operator->() { return &own_; }
  std::vector<T>& operator*() { return own_; }

 private:
  static std::vector<std::vector<T>>& store() {
    static thread_local std::vector<std::vector<T>> vectors;
    return vectors;
  }
  std::vector<T> own_;
};

}  // namespace qkv::kernels
