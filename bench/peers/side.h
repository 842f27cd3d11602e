// Our side of a comparison: a case reads its inputs, does its work on request, and writes its results.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "qkv/io/array.h"

namespace qkv::peers {

using Arrays = std::map<std::string, Array>;

class Case {
 public:
  virtual ~Case() = default;
  /// One repetition of the work that is timed.
  virtual void run() = 0;
  /// Results for comparison with the peer's; called once, before anything is timed.
  virtual Arrays results() = 0;
};

/// Makes a case by name, from the inputs that the runner wrote; fails for an unknown name.
std::unique_ptr<Case> make_case(const std::string& name, const Arrays& inputs);

// One function per subject.
std::unique_ptr<Case> engine_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> attention_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> regression_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> model_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> transformer_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> vision_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> language_case(const std::string& name, const Arrays& inputs);

/// GFLOP/s of multiply-adds in registers on all threads: no program can be faster on this machine.
double fma_peak();

}  // namespace qkv::peers
