// What qkv check does for tasks other than translation. One check_TASK.cpp each.
#pragma once

#include <cstdint>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

struct CheckRequest {
  std::string model, data;
  int64_t count = 16;
  bool json = false;
};

/// Prints what was tried and returns the exit code.
int check_vision(const CheckRequest& request, const Global& global);
int check_encoder(const CheckRequest& request, const Global& global);

}  // namespace qkv::cli
