// A recursive-descent parser of the TeX subset.
#include "qkv/labs/formula_tree.h"

#include <map>
#include <optional>

#include "qkv/core/check.h"

namespace qkv::labs {
namespace {

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

  FormulaNode row(char end) {
    FormulaNode all{FormulaKind::row, "", {}};
    for (skip(); at_ < tex_.size() && tex_[at_] != end; skip()) all.parts.push_back(scripted());
    check(end == '\0' || at_ < tex_.size(), "[formula] a group is not closed: ", tex_);
    if (end != '\0') ++at_;
    return all;
  }

 private:
  void skip() {
    while (at_ < tex_.size() && tex_[at_] == ' ') ++at_;
  }

  FormulaNode scripted() {
    FormulaNode base = atom();
    std::optional<FormulaNode> sub, super;
    for (skip(); at_ < tex_.size() && (tex_[at_] == '_' || tex_[at_] == '^'); skip()) {
      auto& script = tex_[at_++] == '_' ? sub : super;
      skip();
      script = atom();
    }
    if (!sub && !super) return base;
    const FormulaNode none{FormulaKind::row, "", {}};
    return {FormulaKind::scripts, "", {base, sub.value_or(none), super.value_or(none)}};
  }

  FormulaNode group() {
    skip();
    check(at_ < tex_.size() && tex_[at_] == '{', "[formula] a { is missing: ", tex_);
    ++at_;
    return row('}');
  }

  FormulaNode atom() {
    check(at_ < tex_.size(), "[formula] ends too early: ", tex_);
    const char c = tex_[at_];
    if (c == '{') return group();
    if (c == '\\') return command();
    if (tex_.substr(at_).starts_with("...")) {
      at_ += 3;
      return {FormulaKind::sign, "…", {}};
    }
    if (c >= '0' && c <= '9') {
      size_t end = at_;
      while (end < tex_.size() && ((tex_[end] >= '0' && tex_[end] <= '9') || tex_[end] == '.')) ++end;
      FormulaNode number{FormulaKind::number, std::string(tex_.substr(at_, end - at_)), {}};
      at_ = end;
      return number;
    }
    FormulaNode one = character();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) one.kind = FormulaKind::identifier;
    if (c == '\'') one.text = "′";
    if (c == '-') one.text = "−";
    return one;
  }

  // One character, however many bytes it has.
  FormulaNode character() {
    const size_t start = at_++;
    while (at_ < tex_.size() && (static_cast<unsigned char>(tex_[at_]) & 0xC0) == 0x80) ++at_;
    return {FormulaKind::sign, std::string(tex_.substr(start, at_ - start)), {}};
  }

  FormulaNode command() {
    size_t end = ++at_;
    while (end < tex_.size() && ((tex_[end] >= 'a' && tex_[end] <= 'z') || (tex_[end] >= 'A' && tex_[end] <= 'Z')))
      ++end;
    if (end == at_) return character();  // \, \{ \}
    const std::string name(tex_.substr(at_, end - at_));
    at_ = end;
    if (name == "frac") {
      FormulaNode over = group();
      return {FormulaKind::fraction, "", {over, group()}};
    }
    if (name == "sqrt") return {FormulaKind::root, "", {group()}};
    if (name == "left" || name == "right") {
      skip();
      FormulaNode fence = atom();
      fence.form = "fence";
      return fence;
    }
    if (name == "text" || name == "mathrm") {
      skip();
      const size_t close = tex_.find('}', at_);
      check(at_ < tex_.size() && tex_[at_] == '{' && close != tex_.npos, "[formula] a group is not closed: ", tex_);
      FormulaNode text{FormulaKind::text, std::string(tex_.substr(at_ + 1, close - at_ - 1)), {}};
      at_ = close + 1;
      return text;
    }
    if (auto a = kAccents.find(name); a != kAccents.end()) return {FormulaKind::accent, a->second, {group()}};
    if (auto s = kSigns.find(name); s != kSigns.end())
      return {FormulaKind::sign,
              s->second,
              {},
              is_bar(name, 'l')   ? "prefix"
              : is_bar(name, 'r') ? "postfix"
              : name == "mid"     ? "infix"
                                  : ""};
    if (auto g = kGreek.find(name); g != kGreek.end()) return {FormulaKind::identifier, g->second, {}};
    if (auto f = kFunctions.find(name); f != kFunctions.end()) return {FormulaKind::text, f->second, {}};
    fail("[formula] unknown command \\", name, " in ", tex_);
  }

  std::string_view tex_;
  size_t at_ = 0;
};

}  // namespace

FormulaNode parse_formula(std::string_view tex) { return Reader(tex).row('\0'); }

bool is_function_name(std::string_view name) { return kFunctions.find(name) != kFunctions.end(); }

bool is_big(const FormulaNode& n) { return n.kind == FormulaKind::sign && (n.text == "∑" || n.text == "∏"); }

}  // namespace qkv::labs
