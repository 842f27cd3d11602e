// The two languages of the program.
#pragma once

#include <string>

namespace qkv {

enum class Language { en, zh };

/// The same words in both.
struct Text {
  std::string en, zh;
  const std::string& in(Language language) const { return language == Language::zh ? zh : en; }
};

}  // namespace qkv
