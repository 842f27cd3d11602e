// Formulas as one line of Unicode text.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "qkv/labs/formula.h"
#include "qkv/labs/formula_tree.h"

namespace qkv::labs {
namespace {

using Kind = FormulaKind;
using Node = FormulaNode;

// Raised and lowered characters that exist in Unicode and in the fonts of terminals.
using Glyphs = std::map<std::string, std::string, std::less<>>;
const Glyphs kRaised = {{"0", "⁰"}, {"1", "¹"}, {"2", "²"}, {"3", "³"}, {"4", "⁴"}, {"5", "⁵"}, {"6", "⁶"}, {"7", "⁷"},
                        {"8", "⁸"}, {"9", "⁹"}, {"−", "⁻"}, {"+", "⁺"}, {"⊤", "ᵀ"}, {"a", "ᵃ"}, {"b", "ᵇ"}, {"c", "ᶜ"},
                        {"d", "ᵈ"}, {"e", "ᵉ"}, {"f", "ᶠ"}, {"g", "ᵍ"}, {"h", "ʰ"}, {"i", "ⁱ"}, {"j", "ʲ"}, {"k", "ᵏ"},
                        {"l", "ˡ"}, {"m", "ᵐ"}, {"n", "ⁿ"}, {"o", "ᵒ"}, {"p", "ᵖ"}, {"r", "ʳ"}, {"s", "ˢ"}, {"t", "ᵗ"},
                        {"u", "ᵘ"}, {"v", "ᵛ"}, {"w", "ʷ"}, {"x", "ˣ"}, {"y", "ʸ"}, {"z", "ᶻ"}};
const Glyphs kLowered = {{"0", "₀"}, {"1", "₁"}, {"2", "₂"}, {"3", "₃"}, {"4", "₄"}, {"5", "₅"}, {"6", "₆"}, {"7", "₇"},
                         {"8", "₈"}, {"9", "₉"}, {"−", "₋"}, {"+", "₊"}, {"=", "₌"}, {"a", "ₐ"}, {"e", "ₑ"}, {"h", "ₕ"},
                         {"i", "ᵢ"}, {"j", "ⱼ"}, {"k", "ₖ"}, {"l", "ₗ"}, {"m", "ₘ"}, {"n", "ₙ"}, {"o", "ₒ"}, {"p", "ₚ"},
                         {"r", "ᵣ"}, {"s", "ₛ"}, {"t", "ₜ"}, {"u", "ᵤ"}, {"v", "ᵥ"}, {"x", "ₓ"}};

// The text of a script in such characters, or nothing if one of them is missing.
std::optional<std::string> in_glyphs(const Node& n, const Glyphs& glyphs) {
  if (n.kind == Kind::row) {
    std::string out;
    for (const Node& part : n.parts) {
      const auto one = in_glyphs(part, glyphs);
      if (!one) return {};
      out += *one;
    }
    return out;
  }
  if (n.kind == Kind::number) {
    std::string out;
    for (const char c : n.text) {
      const auto found = glyphs.find(std::string(1, c));
      if (found == glyphs.end()) return {};
      out += found->second;
    }
    return out;
  }
  const auto found = n.kind == Kind::identifier || n.kind == Kind::sign ? glyphs.find(n.text) : glyphs.end();
  return found == glyphs.end() ? std::nullopt : std::optional(found->second);
}

bool has_letters(const Node& n) {
  return n.kind == Kind::identifier || n.kind == Kind::text || std::any_of(n.parts.begin(), n.parts.end(), has_letters);
}

bool glyphs_suffice(const Node& n) {
  const auto lacks = [](const Node& script, const Glyphs& glyphs) {
    return has_letters(script) && !in_glyphs(script, glyphs);
  };
  if (n.kind == Kind::scripts && (lacks(n.parts[1], kLowered) || lacks(n.parts[2], kRaised))) return false;
  return std::all_of(n.parts.begin(), n.parts.end(), glyphs_suffice);
}

// Writes a formula as one line of unambiguous text. If one letter has no lowered form ("p_q") while others do ("pₖ"),
// all letters are written with marks, so that they look alike.
class PlainFormula {
 public:
  explicit PlainFormula(Scripts scripts) : small_letters_(scripts == Scripts::small) {}

  std::string text(const Node& n) const {
    switch (n.kind) {
      case Kind::row:
        return row(n);
      case Kind::fraction:
        return fraction(n);
      case Kind::root:
        return "√" + bracketed(n.parts[0]);
      case Kind::accent:
        return text(n.parts[0]) + (n.text == "^" ? "\u0302" : n.text == "~" ? "\u0303" : "\u0304");  // combining
      case Kind::scripts:
        return text(n.parts[0]) + script(n.parts[1], kLowered, "_") + script(n.parts[2], kRaised, "^");
      default:
        return n.text;
    }
  }

 private:
  static bool is_sign(const Node& n, std::initializer_list<std::string_view> signs) {
    return n.kind == Kind::sign && std::find(signs.begin(), signs.end(), n.text) != signs.end();
  }
  static bool opening(const Node& n) {
    return is_sign(n, {"(", "[", "{"}) || (n.kind == Kind::sign && std::string_view(n.form) == "prefix");
  }
  static bool closing(const Node& n) {
    return is_sign(n, {")", "]", "}"}) || (n.kind == Kind::sign && std::string_view(n.form) == "postfix");
  }
  static bool big(const Node& n) { return is_big(n) || (n.kind == Kind::scripts && is_big(n.parts[0])); }
  // Multiplied with an adjacent factor.
  static bool factor(const Node& n) { return n.kind != Kind::sign || is_big(n) || is_sign(n, {"∂", "∇"}); }
  static bool word(const Node& n) { return n.kind == Kind::text && n.text.size() > 1; }
  static bool named_function(const Node& n) {
    return (n.kind == Kind::text && is_function_name(n.text)) ||
           (n.kind == Kind::scripts && named_function(n.parts[0]));
  }

  std::string script(const Node& n, const Glyphs& glyphs, const char* mark) const {
    if (n.kind == Kind::row && n.parts.empty()) return "";
    const auto small = in_glyphs(n, glyphs);
    return small && (small_letters_ || !has_letters(n)) ? *small : mark + bracketed(n);
  }

  // "x" as it is, "x + y" in brackets.
  std::string bracketed(const Node& n) const {
    const bool one = n.kind != Kind::row || n.parts.size() <= 1 || (n.parts.size() == 2 && is_sign(n.parts[1], {"′"}));
    return one ? text(n) : "(" + text(n) + ")";
  }

  // A product needs no brackets in the numerator: ab/c. In the denominator everything does that is more than one thing,
  // except derivatives and norms: a/(bc), but ∂a/∂b and a/‖b‖.
  std::string fraction(const Node& n) const {
    const Node &over = n.parts[0], &under = n.parts[1];
    bool sum = false;
    int depth = 0;  // of brackets
    for (const Node& part : over.kind == Kind::row ? over.parts : std::vector<Node>{}) {
      depth += opening(part) - closing(part.kind == Kind::scripts ? part.parts[0] : part);
      sum |= depth == 0 && (big(part) || part.kind == Kind::fraction || is_sign(part, {"+", "−", "±", "="}));
    }
    const auto& parts = under.parts;
    const bool derivative = under.kind == Kind::row && parts.size() == 2 && is_sign(parts[0], {"∂"});
    const bool norm = under.kind == Kind::row && parts.size() > 2 && opening(parts.front()) && closing(parts.back()) &&
                      parts.front().text != "(";
    return (sum ? "(" + text(over) + ")" : text(over)) + "/" + (derivative || norm ? text(under) : bracketed(under));
  }

  // Spaces go around relations and binary signs, but not after a unary sign: "a − b", "−a". A word is set apart by
  // spaces, and so is a factor after a bracket or a root: "(a + b) c", "√d k". A fraction next to a factor is
  // bracketed:
  // "(1/2) x".
  std::string row(const Node& n) const {
    static const std::set<std::string> kSpaced = {"=", "+", "−", "≈", "→", "∼", "←", "×", "·",
                                                  "≤", "≥", "≠", "∈", "∩", "⊙", "∝", "<", ">"};
    std::string out;
    for (size_t i = 0; i < n.parts.size(); ++i) {
      const Node& part = n.parts[i];
      const Node *before = i > 0 ? &n.parts[i - 1] : nullptr,
                 *after = i + 1 < n.parts.size() ? &n.parts[i + 1] : nullptr;
      std::string piece = text(part);
      const bool beside = (before && (factor(*before) || closing(*before)) && !big(*before)) ||
                          (after && (factor(*after) || opening(*after)));
      if (part.kind == Kind::fraction && beside) piece = "(" + piece + ")";
      const bool unary = is_sign(part, {"−", "+", "±"}) &&
                         (out.empty() || out.back() == ' ' || out.back() == '(' || out.back() == '/');
      const bool apart = before && (closing(*before) || before->kind == Kind::root || before->kind == Kind::fraction ||
                                    word(*before) || named_function(*before) || marked(*before) || big(part) ||
                                    word(part) || big(*before));
      if (part.kind == Kind::sign && kSpaced.count(piece) && !unary)
        out += " " + piece + " ";
      else if (apart && factor(part) && !out.ends_with(' ') && !out.ends_with('('))
        out += " " + piece;
      else
        out += (before && big(*before) && !out.ends_with(' ') ? " " : "") + piece;
      if (piece == ",") out += " ";
    }
    return out;
  }

  // Ends in a letter after a mark, "W_q", so that the next letter must be kept apart from it.
  bool marked(const Node& n) const {
    if (n.kind != Kind::scripts) return false;
    const std::string written = text(n);
    return (written.back() >= 'a' && written.back() <= 'z') || (written.back() >= 'A' && written.back() <= 'Z');
  }

  bool small_letters_;
};

}  // namespace

Scripts scripts_of(std::string_view tex) {
  return glyphs_suffice(parse_formula(tex)) ? Scripts::small : Scripts::marked;
}

std::string plain_formula(std::string_view tex, Scripts scripts) {
  const Node all = parse_formula(tex);
  return PlainFormula(scripts == Scripts::small && !glyphs_suffice(all) ? Scripts::marked : scripts).text(all);
}

}  // namespace qkv::labs
