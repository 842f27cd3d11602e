// qkv translate --force: what a model thinks of given translations.
#pragma once

#include <cstdint>
#include <string>

#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {

struct ForceRequest {
  std::string source, reference;  // files, line by line; "-" is standard input
  int64_t rows = 0;               // pairs at once; 0: as the model's configuration says
  bool json = false, attention = false, quiet = false;
};

/// Prints the log-probability of every line of the reference, and the perplexity of all of them on standard error.
void print_forced(const Translator& translator, const ForceRequest& request);

}  // namespace qkv::cli
