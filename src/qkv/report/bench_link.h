// Addresses of the explorer's benches: the state of a bench as the page writes it after the # (web/src/store.ts).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {
namespace report {

/// BenchLink("regression").set("h", 1.0).address() is "#regression?h=1". Settings that are not set keep their defaults.
class BenchLink {
 public:
  explicit BenchLink(std::string bench) : bench_(std::move(bench)) {}

  BenchLink& set(std::string key, std::string_view text);
  BenchLink& set(std::string key, double number);
  BenchLink& set(std::string key, bool on);
  BenchLink& set(std::string key, const char* text) { return set(std::move(key), std::string_view(text)); }
  /// The rows of a matrix (rows, columns); no number loses a bit.
  BenchLink& set(std::string key, const Tensor& matrix);
  /// Pairs of numbers.
  BenchLink& set(std::string key, const std::vector<double>& x, const std::vector<double>& y);

  const std::string& bench() const { return bench_; }
  std::string address() const;

 private:
  std::string bench_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

}  // namespace report
}  // namespace qkv
