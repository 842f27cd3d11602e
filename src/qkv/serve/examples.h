// Sentences to begin with: some that a model may be asked about without anybody typing.
#pragma once

#include <string>
#include <vector>

#include "qkv/tasks/run_config.h"

namespace qkv::serve {

/// Of the built-in corpus those that no training sees; of data of one's own the first ones of its validation, or else
/// of its training. None if those files are no longer where the training found them.
std::vector<std::string> example_texts(const TranslationConfig& config);
std::vector<std::string> example_texts(const LanguageConfig& config);

}  // namespace qkv::serve
