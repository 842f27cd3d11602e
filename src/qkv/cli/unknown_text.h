// Notes about characters and words of a text that a language model does not know.
#pragma once

#include <string>
#include <vector>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// The model reads these as <unk>: a note on standard error lists the first of them.
void note_unknown(std::vector<std::string> words, const Text& where, const Global& global);

}  // namespace qkv::cli
