// A recursive-descent parser of the TeX subset, with two writers.
#include "qkv/labs/formula.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "qkv/core/check.h"

namespace qkv::labs {
namespace {

enum class Kind { identifier, number, sign, text, row, fraction, root, accent, scripts };

struct Node {
  Kind kind;
  std::string text;  // of a leaf; the mark of an accent
  // A row's parts; a fraction's [over, under]; a root's or accent's [inside]; scripts' [base, sub, super], where an
  // absent script is an empty row.
  std::vector<Node> parts;
  // For a sign: "prefix", "postfix" or "infix" if its position does not tell which, "fence" if it grows with its
  // contents.
  const char* form = "";
};

const std::map<std::string, std::string, std::less<>> kSigns = {
    {"sum", "∑"},   {"prod", "∏"},      {"int", "∫"},     {"cdot", "·"},   {"times", "×"}, {"odot", "⊙"},
    {"le", "≤"},    {"ge", "≥"},        {"ne", "≠"},      {"approx", "≈"}, {"in", "∈"},    {"cap", "∩"},
    {"to", "→"},    {"infty", "∞"},     {"partial", "∂"}, {"nabla", "∇"},  {"pm", "±"},    {"ldots", "…"},
    {"cdots", "⋯"}, {"top", "⊤"},       {"sim", "∼"},     {"propto", "∝"}, {"lVert", "‖"}, {"rVert", "‖"},
    {"mid", "|"},   {"leftarrow", "←"}, {"quad", "  "},   {"lvert", "|"},  {"rvert", "|"}};
const std::map<std::string, std::string, std::less<>> kGreek = {
    {"alpha", "α"},  {"beta", "β"},  {"gamma", "γ"}, {"delta", "δ"}, {"epsilon", "ε"}, {"eta", "η"},   {"theta", "θ"},
    {"lambda", "λ"}, {"mu", "μ"},    {"xi", "ξ"},    {"pi", "π"},    {"rho", "ρ"},     {"sigma", "σ"}, {"tau", "τ"},
    {"phi", "φ"},    {"omega", "ω"}, {"Delta", "Δ"}, {"Phi", "Φ"},   {"Sigma", "Σ"},   {"Omega", "Ω"}, {"ell", "ℓ"}};
const std::map<std::string, std::string, std::less<>> kFunctions = {
    {"exp", "exp"}, {"log", "log"}, {"ln", "ln"},           {"sin", "sin"}, {"cos", "cos"}, {"tanh", "tanh"},
    {"max", "max"}, {"min", "min"}, {"softmax", "softmax"}, {"sgn", "sgn"}, {"Cov", "Cov"}};
const std::map<std::string, std::string, std::less<>> kAccents = {{"hat", "^"}, {"tilde", "~"}, {"bar", "¯"}};

// \lvert or \lVert, \rvert or \rVert.
bool is_bar(std::string_view name, char side) { return name.size() == 5 && name[0] == side && name.ends_with("ert"); }

class Reader {
 public:
  explicit Reader(std::string_view tex) : tex_(tex) {}

  Node row(char end) {
    Node all{Kind::row, "", {}};
    for (skip(); at_ < tex_.size() && tex_[at_] != end; skip()) all.parts.push_back(scripted());
    check(end == '\0' || at_ < tex_.size(), "[formula] a group is not closed: ", tex_);
    if (end != '\0') ++at_;
    return all;
  }

 private:
  void skip() {
    while (at_ < tex_.size() && tex_[at_] == ' ') ++at_;
  }

  Node scripted() {
    Node base = atom();
    std::optional<Node> sub, super;
    for (skip(); at_ < tex_.size() && (tex_[at_] == '_' || tex_[at_] == '^'); skip()) {
      auto& script = tex_[at_++] == '_' ? sub : super;
      skip();
      script = atom();
    }
    if (!sub && !super) return base;
    const Node none{Kind::row, "", {}};
    return {Kind::scripts, "", {base, sub.value_or(none), super.value_or(none)}};
  }

  Node group() {
    skip();
    check(at_ < tex_.size() && tex_[at_] == '{', "[formula] a { is missing: ", tex_);
    ++at_;
    return row('}');
  }

  Node atom() {
    check(at_ < tex_.size(), "[formula] ends too early: ", tex_);
    const char c = tex_[at_];
    if (c == '{') return group();
    if (c == '\\') return command();
    if (tex_.substr(at_).starts_with("...")) {
      at_ += 3;
      return {Kind::sign, "…", {}};
    }
    if (c >= '0' && c <= '9') {
      size_t end = at_;
      while (end < tex_.size() && ((tex_[end] >= '0' && tex_[end] <= '9') || tex_[end] == '.')) ++end;
      Node number{Kind::number, std::string(tex_.substr(at_, end - at_)), {}};
      at_ = end;
      return number;
    }
    Node one = character();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) one.kind = Kind::identifier;
    if (c == '\'') one.text = "′";
    if (c == '-') one.text = "−";
    return one;
  }

  // One character, however many bytes it has.
  Node character() {
    const size_t start = at_++;
    while (at_ < tex_.size() && (static_cast<unsigned char>(tex_[at_]) & 0xC0) == 0x80) ++at_;
    return {Kind::sign, std::string(tex_.substr(start, at_ - start)), {}};
  }

  Node command() {
    size_t end = ++at_;
    while (end < tex_.size() && ((tex_[end] >= 'a' && tex_[end] <= 'z') || (tex_[end] >= 'A' && tex_[end] <= 'Z')))
      ++end;
    if (end == at_) return character();  // \, \{ \}
    const std::string name(tex_.substr(at_, end - at_));
    at_ = end;
    if (name == "frac") {
      Node over = group();
      return {Kind::fraction, "", {over, group()}};
    }
    if (name == "sqrt") return {Kind::root, "", {group()}};
    if (name == "left" || name == "right") {
      skip();
      Node fence = atom();
      fence.form = "fence";
      return fence;
    }
    if (name == "text" || name == "mathrm") {
      skip();
      const size_t close = tex_.find('}', at_);
      check(at_ < tex_.size() && tex_[at_] == '{' && close != tex_.npos, "[formula] a group is not closed: ", tex_);
      Node text{Kind::text, std::string(tex_.substr(at_ + 1, close - at_ - 1)), {}};
      at_ = close + 1;
      return text;
    }
    if (auto a = kAccents.find(name); a != kAccents.end()) return {Kind::accent, a->second, {group()}};
    if (auto s = kSigns.find(name); s != kSigns.end())
      return {Kind::sign,
              s->second,
              {},
              is_bar(name, 'l')   ? "prefix"
              : is_bar(name, 'r') ? "postfix"
              : name == "mid"     ? "infix"
                                  : ""};
    if (auto g = kGreek.find(name); g != kGreek.end()) return {Kind::identifier, g->second, {}};
    if (auto f = kFunctions.find(name); f != kFunctions.end()) return {Kind::text, f->second, {}};
    fail("[formula] unknown command \\", name, " in ", tex_);
  }

  std::string_view tex_;
  size_t at_ = 0;
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

bool is_big(const Node& n) { return n.kind == Kind::sign && (n.text == "∑" || n.text == "∏"); }

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
    return (n.kind == Kind::text && kFunctions.count(n.text) > 0) ||
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

std::string mathml(std::string_view tex, bool display) {
  return std::string("<math") + (display ? " display=\"block\"" : "") + ">" + to_mathml(Reader(tex).row('\0')) +
         "</math>";
}

std::string aligned_mathml(const std::vector<std::string>& equations) {
  std::string rows;
  for (const std::string& tex : equations) {
    const Node all = Reader(tex).row('\0');
    const auto equals =
        std::ranges::find_if(all.parts, [](const Node& n) { return n.kind == Kind::sign && n.text == "="; });
    const Node left{Kind::row, "", {all.parts.begin(), equals}}, right{Kind::row, "", {equals, all.parts.end()}};
    rows += "<mtr><mtd style=\"text-align: right; text-align: -webkit-right; padding-right: 0\">" + to_mathml(left) +
            "</mtd><mtd style=\"text-align: left; padding-left: 0\">" + to_mathml(right) + "</mtd></mtr>";
  }
  return "<math display=\"block\"><mtable displaystyle=\"true\">" + rows + "</mtable></math>";
}

Scripts scripts_of(std::string_view tex) {
  return glyphs_suffice(Reader(tex).row('\0')) ? Scripts::small : Scripts::marked;
}

std::string plain_formula(std::string_view tex, Scripts scripts) {
  const Node all = Reader(tex).row('\0');
  return PlainFormula(scripts == Scripts::small && !glyphs_suffice(all) ? Scripts::marked : scripts).text(all);
}

}  // namespace qkv::labs
