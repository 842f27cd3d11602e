// Pieces of the report's HTML: text in both languages side by side, of which the page shows one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "qkv/core/language.h"

namespace qkv::labs {

std::string html_escaped(std::string_view text);
/// What `write` says in each language, as elements of class en and zh; once, if both are the same.
std::string in_both_languages(const std::function<std::string(Language)>& write, std::string_view tag = "span");
/// A paragraph's markup as HTML, in one language.
std::string inline_html(const Text& text, Language language);
/// In both languages: with markup, or as it is.
std::string inline_html(const Text& text);
std::string plain_html(const Text& text);

/// The look of the report, and the script of its buttons.
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace qkv::labs
