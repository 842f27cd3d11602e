// Labs by the names that people type.
#pragma once

#include <string>
#include <vector>

#include "qkv/cli/command.h"
#include "qkv/labs/lab.h"

namespace qkv::cli {

/// The labs of those names, in that order: a name, a section of either edition (10.2, 11.2), an exercise (10.2.4), a
/// section of chapter 9 that a lab treats, "all". What is not there is an error with the nearest name, or with what is
/// planned, as its hint.
std::vector<const labs::Lab*> named_labs(const std::vector<std::string>& names, const Global& global);

/// Refuses a file that none of the labs takes, or that has no sentence pairs, before anything is run.
void check_lab_data(const std::string& data, const std::vector<const labs::Lab*>& labs);

}  // namespace qkv::cli
