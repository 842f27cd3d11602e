// Formulas as MathML.
#include <algorithm>
#include <map>
#include <set>

#include "qkv/labs/formula.h"
#include "qkv/labs/formula_tree.h"

namespace qkv::labs {
namespace {

using Kind = FormulaKind;
using Node = FormulaNode;

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

// A leading minus is a sign, not a difference. Dots, ∞ and ⊤ are symbols, not operators: they have no space around
// them, nor does the slash of a fraction.
std::string sign_mathml(const Node& n, bool leads) {
  static const std::set<std::string> kBrackets = {"(", ")", "[", "]", "{", "}", "|", "‖"},
                                     kThings = {"…", "⋯", "∞", "⊤"};
  if (n.text == "  ") return "<mspace width=\"1em\"/>";
  if (kThings.count(n.text)) return "<mi>" + n.text + "</mi>";
  const bool unary = leads && (n.text == "−" || n.text == "+" || n.text == "±");
  const std::string_view form = n.form;
  std::string attributes;
  if (form == "prefix" || unary) attributes += " form=\"prefix\"";
  if (form == "postfix") attributes += " form=\"postfix\"";
  if (n.text == "/") attributes += " lspace=\"0\" rspace=\"0\"";
  if (kBrackets.count(n.text) && form != "fence") attributes += " stretchy=\"false\"";
  return "<mo" + attributes + ">" + escaped(n.text) + "</mo>";
}

// ---- brackets: an opening bracket, its contents and the closing bracket form a row of their own, so that both
// brackets have the height of that row ----

// The sign itself, even if it carries scripts: the closing bracket of (a + b)².
const Node* sign_of(const Node& n) {
  if (n.kind == Kind::sign) return &n;
  return n.kind == Kind::scripts && n.parts[0].kind == Kind::sign ? &n.parts[0] : nullptr;
}

bool closes(const Node& open, const Node& n) {
  static const std::map<std::string, std::string> kPairs = {{"(", ")"}, {"[", "]"}, {"{", "}"}, {"|", "|"}, {"‖", "‖"}};
  const Node* sign = sign_of(n);
  const auto pair = kPairs.find(open.text);
  if (!sign || pair == kPairs.end() || sign->text != pair->second) return false;
  const std::string_view from = open.form, to = sign->form;
  return from == "prefix" ? to == "postfix" : from == to && from != "infix" && from != "postfix";
}

// The index at which the bracket at `start` is closed, or 0 if it is not closed in this row.
size_t closing_of(const std::vector<Node>& parts, size_t start) {
  const Node& open = parts[start];
  if (open.kind != Kind::sign) return 0;
  int depth = 1;
  for (size_t i = start + 1; i < parts.size(); ++i) {
    if (closes(open, parts[i]) && --depth == 0) return i;
    if (parts[i].kind == Kind::sign && parts[i].text == open.text && std::string_view(parts[i].form) == open.form &&
        !closes(open, parts[i]))
      ++depth;
  }
  return 0;
}

// Taller than a line of text, so that brackets around it grow.
bool is_tall(const Node& n) {
  if (n.kind == Kind::fraction || is_big(n)) return true;
  return std::ranges::any_of(n.parts, is_tall);
}

// Whether a new term begins after this sign, so that a minus there is a sign of that term.
bool opens(const Node& n) {
  static const std::set<std::string> kOpening = {"(", "[", ",", "=", "≈", "≤", "≥", "∼",
                                                 "→", "←", "+", "−", "·", "×", "/", "  "};
  return n.kind == Kind::sign && kOpening.count(n.text) > 0;
}

std::string to_mathml(const Node& n);

std::string scripts_mathml(const Node& n, const std::string& base) {
  const auto there = [](const Node& script) { return !script.parts.empty() || script.kind != Kind::row; };
  const bool sub = there(n.parts[1]), super = there(n.parts[2]), big = is_big(n.parts[0]);
  const std::string name = sub && super ? (big ? "munderover" : "msubsup")
                           : sub        ? (big ? "munder" : "msub")
                                        : (big ? "mover" : "msup");
  return "<" + name + ">" + base + (sub ? to_mathml(n.parts[1]) : "") + (super ? to_mathml(n.parts[2]) : "") + "</" +
         name + ">";
}

std::string row_mathml(const Node& n);

// The brackets at `first` and `last` with their contents, and the scripts of the closing one.
std::string fenced_mathml(const std::vector<Node>& parts, size_t first, size_t last) {
  const Node inside{
      Kind::row,
      "",
      {parts.begin() + static_cast<std::ptrdiff_t>(first) + 1, parts.begin() + static_cast<std::ptrdiff_t>(last)}};
  const std::string stretch =
      is_tall(inside) || std::string_view(parts[first].form) == "fence" ? "\"true\"" : "\"false\"";
  const auto bracket = [&](const std::string& text, const char* form) {
    return std::string("<mo form=\"") + form + "\" stretchy=" + stretch + ">" + text + "</mo>";
  };
  const std::string all = "<mrow>" + bracket(parts[first].text, "prefix") + row_mathml(inside) +
                          bracket(sign_of(parts[last])->text, "postfix") + "</mrow>";
  return parts[last].kind == Kind::scripts ? scripts_mathml(parts[last], all) : all;
}

std::string row_mathml(const Node& n) {
  std::string inside;
  const Node* before = nullptr;
  for (size_t i = 0; i < n.parts.size(); ++i) {
    const Node& part = n.parts[i];
    if (const size_t last = closing_of(n.parts, i)) {
      inside += fenced_mathml(n.parts, i, last);
      i = last;
      before = &n.parts[last];
      continue;
    }
    const bool leads = !before || opens(*before);
    const bool word = part.kind == Kind::text && part.text.size() > 1;
    const bool after_word = before && before->kind == Kind::text && before->text.size() > 1 &&
                            (part.kind == Kind::identifier || part.kind == Kind::scripts);
    if ((word && !leads) || after_word) inside += "<mspace width=\"0.17em\"/>";
    inside += part.kind == Kind::sign ? sign_mathml(part, leads) : to_mathml(part);
    before = &part;
  }
  return "<mrow>" + inside + "</mrow>";
}

std::string to_mathml(const Node& n) {
  const auto tag = [](const char* name, const std::string& inside) {
    return std::string("<") + name + ">" + inside + "</" + name + ">";
  };
  switch (n.kind) {
    case Kind::identifier:
      return tag("mi", n.text);
    case Kind::number:
      return tag("mn", n.text);
    case Kind::sign:
      return sign_mathml(n, false);
    case Kind::text:
      return tag("mtext", escaped(n.text));
    case Kind::row:
      return row_mathml(n);
    case Kind::fraction:
      return tag("mfrac", to_mathml(n.parts[0]) + to_mathml(n.parts[1]));
    case Kind::root:
      return tag("msqrt", to_mathml(n.parts[0]));
    case Kind::accent:
      return tag("mover", to_mathml(n.parts[0]) + tag("mo", n.text));
    case Kind::scripts:
      return scripts_mathml(n, to_mathml(n.parts[0]));
  }
  return "";
}

}  // namespace

std::string mathml(std::string_view tex, bool display) {
  return std::string("<math") + (display ? " display=\"block\"" : "") + ">" + to_mathml(parse_formula(tex)) + "</math>";
}

std::string aligned_mathml(const std::vector<std::string>& equations) {
  std::string rows;
  for (const std::string& tex : equations) {
    const Node all = parse_formula(tex);
    const auto equals =
        std::ranges::find_if(all.parts, [](const Node& n) { return n.kind == Kind::sign && n.text == "="; });
    const Node left{Kind::row, "", {all.parts.begin(), equals}}, right{Kind::row, "", {equals, all.parts.end()}};
    rows += "<mtr><mtd style=\"text-align: right; text-align: -webkit-right; padding-right: 0\">" + to_mathml(left) +
            "</mtd><mtd style=\"text-align: left; padding-left: 0\">" + to_mathml(right) + "</mtd></mtr>";
  }
  return "<math display=\"block\"><mtable displaystyle=\"true\">" + rows + "</mtable></math>";
}

}  // namespace qkv::labs
