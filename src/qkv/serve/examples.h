// Sentences to begin with: some that a model may be asked about without anybody typing.
#pragma once

#include <string>
#include <vector>

#include "qkv/tasks/run_config.h"

namespace qkv::serve {

/// Sentences that no training sees, for the built-in corpus; for other data the first ones of the validation, or else
/// of the training. A path that is not absolute is looked for where the program runs, and near the run's folder. None
/// if those files are not there any more.
std::vector<std::string> example_texts(const TranslationConfig& config, const std::string& folder);
std::vector<std::string> example_texts(const LanguageConfig& config, const std::string& folder);

}  // namespace qkv::serve
