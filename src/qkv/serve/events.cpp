// A ring of events under one lock: they are few and small.
#include "qkv/serve/events.h"

#include <algorithm>
#include <chrono>

namespace qkv::serve {

void EventHub::publish(std::string name, std::string json) {
  const std::lock_guard lock(mutex_);
  events_.push_back({std::move(name), std::move(json)});
  if (events_.size() > kKept) {
    events_.pop_front();
    ++first_;
  }
  arrived_.notify_all();
}

uint64_t EventHub::next() const {
  const std::lock_guard lock(mutex_);
  return first_ + events_.size();
}

std::optional<Event> EventHub::wait(uint64_t& number, double seconds) {
  std::unique_lock lock(mutex_);
  const auto there = [&] { return closed_ || number < first_ + events_.size(); };
  arrived_.wait_for(lock, std::chrono::duration<double>(seconds), there);
  if (closed_ || number >= first_ + events_.size()) return {};
  number = std::max(number, first_);
  return events_[static_cast<size_t>(number++ - first_)];
}

void EventHub::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  arrived_.notify_all();
}

bool EventHub::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace qkv::serve
