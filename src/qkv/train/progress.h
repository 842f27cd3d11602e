// Progress of training as text; the program prints it.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/train/fit.h"

namespace QKV_API qkv {

/// "epoch 3/10", and "step 120/400  loss 0.1234  98,304 tok/s  0:12 left": what is before and after a bar.
Text progress_head(const Progress& p);
Text progress_tail(const Progress& p);
/// "epoch 3/10 step 120/400 loss 0.1234 98,304 tok/s", for logs.
Text progress_line(const Progress& p);
/// The same as a JSON object.
std::string progress_json(const Progress& p);
/// Decides when a log gets another line: half a minute after the last one.
class LogPace {
 public:
  static constexpr double kSeconds = 30;
  /// Whether a line is due at this time of the training; if so, it counts as written.
  bool due(double seconds) {
    if (seconds - last_ < kSeconds) return false;
    last_ = seconds;
    return true;
  }
  void written(double seconds) { last_ = seconds; }

 private:
  double last_ = 0;
};
/// "0:12", "4:05", "1:02:03".
std::string duration(double seconds);

}  // namespace qkv
