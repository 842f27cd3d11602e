// Formulas: a small part of TeX's language as MathML for pages and as plain Unicode for terminals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::labs {

/// Groups, ^, _, \frac, \sqrt, \sum, \text, \mathrm, \hat, Greek letters and the usual symbols; anything else fails
/// with its name.
std::string mathml(std::string_view tex, bool display);
/// Equations below each other, their first = in line.
std::string aligned_mathml(const std::vector<std::string>& equations);

/// How letters below and above the line look in plain text: x with a small i, or x_i. Not every letter has a small
/// form, and formulas that stand together should look alike.
enum class Scripts { small, marked };
/// small when every script of the formula has such a form.
Scripts scripts_of(std::string_view tex);
std::string plain_formula(std::string_view tex, Scripts scripts = Scripts::small);

}  // namespace qkv::labs
