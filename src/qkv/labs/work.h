// Long work of a lab, such as training, with its progress.
#pragma once

#include <mutex>
#include <vector>

#include "qkv/labs/lab.h"
#include "qkv/train/fit.h"

namespace qkv::labs {

/// Work in parts that may run at once, each on its own thread. Reports the total progress to Page::at_work, and 1 when
/// destroyed.
class Work {
 public:
  Work(const Page& page, Text what, size_t parts = 1) : page_(page), what_(std::move(what)), done_(parts, 0.0) {}
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  /// Sets the progress of a part, from 0 to 1.
  void at(size_t part, double share);

 private:
  const Page& page_;
  Text what_;
  std::mutex mutex_;
  std::vector<double> done_;
};

/// Reports a training as one part of the work.
class WorkObserver : public Observer {
 public:
  explicit WorkObserver(Work& work, size_t part = 0) : work_(work), part_(part) {}
  void step(const Progress& p) override { work_.at(part_, static_cast<double>(p.step) / static_cast<double>(p.steps)); }
  void finished(const Progress&) override { work_.at(part_, 1); }

 private:
  Work& work_;
  size_t part_;
};

}  // namespace qkv::labs
