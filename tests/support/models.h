// Where tests find real pretrained models: the folder QKV_TEST_MODELS names, else ../shared/models beside the project.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace qkv_test {

/// A pretrained folder, or "" when it is not there and the test must skip.
inline std::string real_model(const std::string& name) {
  const char* folder = std::getenv("QKV_TEST_MODELS");
  const std::string path = (folder ? std::string(folder) : QKV_SOURCE_DIR "/../shared/models") + "/" + name;
  const auto has = [&](const char* file) { return std::filesystem::exists(path + "/" + file); };
  return has("model.safetensors") || has("model.bin") ? path : "";
}

/// What the authors of a model computed with it, beside the project; "" when it is not there.
inline std::string model_golden(const std::string& name) {
  const std::string path = QKV_SOURCE_DIR "/../shared/models/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace qkv_test
