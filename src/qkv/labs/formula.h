// Formulas: a small part of TeX's language as MathML for pages and as plain Unicode for terminals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::labs {

/// Groups, ^, _, \frac, \sqrt, \sum, \text, \mathrm, \hat, Greek letters and the usual symbols; anything else fails with its name.
std::string mathml(std::string_view tex, bool display);
/// Equations below each other, their first = in line.
std::string aligned_mathml(const std::vector<std::string>& equations);
std::string plain_formula(std::string_view tex);

}  // namespace qkv::labs
