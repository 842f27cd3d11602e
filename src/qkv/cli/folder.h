// Folders that commands write into.
#pragma once

#include <filesystem>
#include <string>

#include "qkv/core/check.h"

namespace qkv::cli {

/// Makes the folder and those above it; fails with its name.
inline void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail("cannot make the folder ", path, ": ", error.message());
}

}  // namespace qkv::cli
