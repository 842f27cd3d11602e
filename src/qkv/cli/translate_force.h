// qkv translate --force: the probability of given translations.
#pragma once

#include <cstdint>
#include <string>

#include "qkv/cli/command.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {

struct ForceRequest {
  std::string source, reference;  // line-aligned files; "-" is standard input
  int64_t rows = 0;               // pairs at once; 0: from the model's configuration
  bool json = false, attention = false;
};

/// Prints the log-probability of every line of the reference, and the perplexity of all of them on standard error.
void print_forced(const Translator& translator, const ForceRequest& request, const Global& global);

}  // namespace qkv::cli
