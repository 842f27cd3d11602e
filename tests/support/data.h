// Where tests find real corpora: the folder QKV_TEST_DATA names, else ../shared/data beside the project.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace qkv_test {

/// The path of a file of the real data, or "" when it is not there and the test must skip.
inline std::string real_data(const std::string& name) {
  const char* folder = std::getenv("QKV_TEST_DATA");
  const std::string path = (folder ? std::string(folder) : QKV_SOURCE_DIR "/../shared/data") + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace qkv_test

#define QKV_NEEDS(path, name)                         \
  const std::string path = qkv_test::real_data(name); \
  if (path.empty()) GTEST_SKIP() << name << " is not in QKV_TEST_DATA nor in ../shared/data"
