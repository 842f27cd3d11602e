// The messages at the end of a training: two translated sentences, and the command to type next.
#pragma once

#include <string>

#include "qkv/cli/command.h"
#include "qkv/tasks/translation/run.h"

namespace qkv::cli {

/// The word quoted for a shell, if necessary.
std::string shell_word(const std::string& word);

/// A line on standard error; on a terminal it is wrapped between words.
void say_line(const Text& line, const Global& global);

/// Two short sentences, from the validation set if there is one, with their translations, on standard error.
void say_samples(const TranslationRun& run, const Global& global);
/// "next: echo '...' | qkv translate --model DIR", on standard error.
void say_next(const TranslationRun& run, const Global& global);

}  // namespace qkv::cli
