// A training in a process of its own, at low priority: it cannot slow the server down or take it along.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace qkv::serve {

class Trainer {
 public:
  Trainer() = default;
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void start(std::vector<std::string> command);
  /// Whether it is still at work. Afterwards `failed` says whether it ended badly.
  bool running();
  bool failed() const { return failed_; }
  /// The signal that ended it; 0 if none did.
  int signal() const { return signal_; }
  /// What its last error said, without "qkv: error: "; empty if there was none.
  std::string last_words() const;
  /// Asks it to save itself, and waits.
  void stop();

 private:
  int process_ = -1;  // its id
  int errors_ = -1;   // a file in memory with its standard error
  bool failed_ = false;
  int signal_ = 0;
};

}  // namespace qkv::serve
