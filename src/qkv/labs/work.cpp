// Adds up the progress of the parts.
#include "qkv/labs/work.h"

#include <algorithm>
#include <numeric>

namespace qkv::labs {

void Work::at(size_t part, double share) {
  const std::lock_guard lock(mutex_);
  done_.at(part) = std::clamp(share, 0.0, 1.0);
  const double all = std::accumulate(done_.begin(), done_.end(), 0.0) / static_cast<double>(done_.size());
  if (page_.at_work && all < 1) page_.at_work(what_, all);
}

Work::~Work() {
  if (page_.at_work) page_.at_work(what_, 1);
}

}  // namespace qkv::labs
