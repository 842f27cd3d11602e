// Labs by the names that people type.
#pragma once

#include "qkv/cli/command.h"
#include "qkv/labs/lab.h"

namespace qkv::cli {

/// The lab of that name or section; an unknown one is an error with the nearest name as its hint.
const labs::Lab& named_lab(const std::string& name, Language language);

}  // namespace qkv::cli
