// Labs by the names that people type.
#pragma once

#include <string>
#include <vector>

#include "qkv/cli/command.h"
#include "qkv/labs/lab.h"

namespace qkv::cli {

/// The labs of those names, in that order. A name is a lab's name, a section of either edition (10.2, 11.2), an
/// exercise (10.2.4), a section of chapter 9 that a lab covers, or "all". For an unknown name the error suggests the
/// nearest one.
std::vector<const labs::Lab*> named_labs(const std::vector<std::string>& names, const Global& global);

/// Refuses a file if none of the labs takes data or if it has no sentence pairs, before anything runs.
void check_lab_data(const std::string& data, const std::vector<const labs::Lab*>& labs);

}  // namespace qkv::cli
