// How a sentence-transformers folder makes one vector of a text: modules.json and the files that it names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/names.h"

namespace QKV_API qkv {

/// How the states of a text's tokens become one vector: their mean, the first one ([CLS], <s>), or the largest element
/// in every column.
enum class TextPooling { mean, cls, max };
constexpr std::array<std::string_view, 3> names(TextPooling) { return {"mean", "cls", "max"}; }

struct SentenceModules {
  bool given = false;  // the folder says so
  TextPooling pooling = TextPooling::mean;
  bool normalize = false;            // to length 1
  bool lowercase = false;            // texts, before the tokenizer
  std::string prompt = {};           // put before every text
  std::optional<int64_t> most = {};  // tokens of a text, special ones included; the rest is cut off
};

/// What the folder says; without modules.json the defaults. A module that we do not have is refused by name.
SentenceModules read_sentence_modules(const std::string& folder);

}  // namespace qkv
