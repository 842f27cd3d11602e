// What a training says when it is over: what the model makes of two sentences, and the command to type next.
#pragma once

#include <string>

#include "qkv/cli/command.h"
#include "qkv/tasks/translation/run.h"

namespace qkv::cli {

/// The word as a shell reads it: in quotes where it needs them.
std::string shell_word(const std::string& word);

/// A line on standard error; on a terminal broken between words.
void say_line(const std::string& line);

/// Two short sentences, of the validation set where there is one, with their translations; on standard error.
void say_samples(const TranslationRun& run);
/// "next: echo '...' | qkv translate --model DIR", on standard error.
void say_next(const TranslationRun& run, const Global& global);

}  // namespace qkv::cli
