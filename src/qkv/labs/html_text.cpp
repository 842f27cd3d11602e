// Text of the report in both languages.
#include "qkv/labs/html_text.h"

#include <fmt/format.h>

#include "qkv/labs/formula.h"
#include "qkv/labs/markup.h"
#include "qkv/labs/typeset.h"

namespace qkv::labs {
namespace {

struct HtmlWriter {
  std::string plain(std::string_view s) { return html_escaped(s); }
  std::string code(std::string_view s) { return "<code>" + html_escaped(s) + "</code>"; }
  std::string strong(std::string_view s) { return "<strong>" + html_escaped(s) + "</strong>"; }
  std::string formula(std::string_view s) { return mathml(s, false); }
};

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string in_both_languages(const std::function<std::string(Language)>& write, std::string_view tag) {
  const std::string en = write(Language::en), zh = write(Language::zh);
  if (en == zh) return en;
  return fmt::format("<{0} class=\"en\" lang=\"en\">{1}</{0}><{0} class=\"zh\" lang=\"zh-CN\">{2}</{0}>", tag, en, zh);
}

std::string inline_html(const Text& text, Language language) {
  return marked_up(typeset(text, language), HtmlWriter{});
}

std::string inline_html(const Text& text) {
  return in_both_languages([&](Language language) { return inline_html(text, language); });
}

std::string plain_html(const Text& text) {
  return in_both_languages([&](Language language) { return html_escaped(text.in(language)); });
}

}  // namespace qkv::labs
