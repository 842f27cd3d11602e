// Our side of a comparison: a case reads its inputs, does its work when told, and writes what came out.
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
  /// What the peer's results must agree with; called once, before anything is timed.
  virtual Arrays results() = 0;
};

/// By name, from the inputs that the runner wrote; fails for an unknown one.
std::unique_ptr<Case> make_case(const std::string& name, const Arrays& inputs);

// One function a subject.
std::unique_ptr<Case> engine_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> attention_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> regression_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> model_case(const std::string& name, const Arrays& inputs);
std::unique_ptr<Case> transformer_case(const std::string& name, const Arrays& inputs);

/// GFLOP/s of multiply-adds in registers on all threads: no program computes faster here.
double fma_peak();

}  // namespace qkv::peers
