// Events for everybody who listens: training progress, changed models, tokens as they are written.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

namespace qkv::serve {

struct Event {
  std::string name, json;
};

/// Keeps the last events. A listener that falls behind by more than that misses the oldest ones.
class EventHub {
 public:
  static constexpr size_t kKept = 1024;

  void publish(std::string name, std::string json);
  /// The number of the next event.
  uint64_t next() const;
  /// The event with that number, or a later one if it is gone; waits up to `seconds`. Nothing after a time-out or when
  /// the hub is closed. `number` becomes that of the following event.
  std::optional<Event> wait(uint64_t& number, double seconds);
  void close();
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  uint64_t first_ = 0;
  bool closed_ = false;
};

}  // namespace qkv::serve
