// Files for tests: a folder that vanishes, whole-file bytes, and the one line of an error.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "qkv/core/check.h"

namespace qkv_test {

using qkv::check;
using qkv::Error;

class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "qkv-test-XXXXXX").string()) {
    check(mkdtemp(path_.data()) != nullptr, "no temporary folder");
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  int count() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator{}));
  }

 private:
  std::string path_;
};

inline std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(
      path);  // cutting an old file to nothing makes some file systems flush it: slow, thousands of times
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.flush();
  check(out.good(), "cannot write ", path);
}

/// What the call throws as qkv::Error, or "no error". Anything else that it throws fails the test.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The bytes of hexadecimal digits.
inline std::string from_hex(const std::string& digits) {
  std::string out;
  for (size_t i = 0; i < digits.size(); i += 2) out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return out;
}

}  // namespace qkv_test
