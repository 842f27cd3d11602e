// Formulas as trees: read once, written as MathML or as plain text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::labs {

enum class FormulaKind { identifier, number, sign, text, row, fraction, root, accent, scripts };

struct FormulaNode {
  FormulaKind kind;
  std::string text;  // of a leaf; the mark of an accent
  // A row's parts; a fraction's [over, under]; a root's or accent's [inside]; scripts' [base, sub, super], where an
  // absent script is an empty row.
  std::vector<FormulaNode> parts;
  // For a sign: "prefix", "postfix" or "infix" if its position does not tell which, "fence" if it grows with its
  // contents.
  const char* form = "";
};

/// Reads a formula, throwing at anything that formula.h does not list.
FormulaNode parse_formula(std::string_view tex);

/// "exp", "softmax" and the like.
bool is_function_name(std::string_view name);
/// A sum or a product: its scripts go below and above it.
bool is_big(const FormulaNode& n);

}  // namespace qkv::labs
