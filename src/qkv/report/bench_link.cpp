// Settings as JSON, escaped as a browser's URLSearchParams does it.
#include "qkv/report/bench_link.h"

#include <charconv>

#include "qkv/core/check.h"

namespace qkv::report {
namespace {

// The shortest digits that give the same number again.
template <class Number>
std::string digits(Number value) {
  char out[32];
  const auto end = std::to_chars(out, out + sizeof out, value).ptr;
  return {out, end};
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '*' ||
                       c == '-' || c == '.' || c == '_';
    if (plain) {
      out += c;
    } else if (c == ' ') {
      out += '+';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4];
      out += "0123456789ABCDEF"[byte & 15];
    }
  }
  return out;
}

}  // namespace

BenchLink& BenchLink::set(std::string key, std::string_view text) {
  settings_.emplace_back(std::move(key), std::string(text));
  return *this;
}

BenchLink& BenchLink::set(std::string key, double number) { return set(std::move(key), digits(number)); }

BenchLink& BenchLink::set(std::string key, bool on) { return set(std::move(key), on ? "true" : "false"); }

BenchLink& BenchLink::set(std::string key, const Tensor& matrix) {
  check(matrix.rank() == 2, "[bench_link] ", key, ": expected a matrix, got ", matrix.shape());
  std::string out = "[";
  for (int64_t i = 0; i < matrix.size(0); ++i) {
    out += i > 0 ? ",[" : "[";
    for (int64_t j = 0; j < matrix.size(1); ++j)
      out += (j > 0 ? "," : "") + digits(matrix.ptr()[i * matrix.size(1) + j]);
    out += "]";
  }
  return set(std::move(key), out + "]");
}

BenchLink& BenchLink::set(std::string key, const std::vector<double>& x, const std::vector<double>& y) {
  check(x.size() == y.size(), "[bench_link] ", key, ": ", x.size(), " and ", y.size(), " numbers");
  std::string out = "[";
  for (size_t i = 0; i < x.size(); ++i) out += (i > 0 ? ",[" : "[") + digits(x[i]) + "," + digits(y[i]) + "]";
  return set(std::move(key), out + "]");
}

std::string BenchLink::address() const {
  std::string out = "#" + bench_;
  for (size_t i = 0; i < settings_.size(); ++i)
    out += (i == 0 ? "?" : "&") + escaped(settings_[i].first) + "=" + escaped(settings_[i].second);
  return out;
}

}  // namespace qkv::report
