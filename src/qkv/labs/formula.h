// Formulas in a small subset of TeX, as MathML for pages and as plain Unicode for terminals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::labs {

/// Groups, ^, _, \frac, \sqrt, \sum, \text, \mathrm, \hat, Greek letters and the usual symbols. Throws at anything
/// else, naming it.
std::string mathml(std::string_view tex, bool display);
/// Equations one below the other, aligned at their first =.
std::string aligned_mathml(const std::vector<std::string>& equations);

/// How subscripts and superscripts look in plain text: x with a small i, or x_i. Not every letter has a small form, and
/// formulas shown together should look alike.
enum class Scripts { small, marked };
/// `small` if every script of the formula has a small form.
Scripts scripts_of(std::string_view tex);
std::string plain_formula(std::string_view tex, Scripts scripts = Scripts::small);

}  // namespace qkv::labs
