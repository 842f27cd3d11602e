// Saying a text in a language.
#include "qkv/core/language.h"

#include <fmt/format.h>

#include "qkv/core/catalogue.h"

namespace qkv {
namespace {

std::string written(const TextValue& value, std::string_view format, Language language) {
  return std::visit(
      [&](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, Text>)
          return v.in(language);
        else
          return fmt::vformat(fmt::format("{{:{}}}", format), fmt::make_format_args(v));
      },
      value.value);
}

}  // namespace

Text::Text() = default;
Text::Text(std::string verbatim) : pattern_(std::move(verbatim)) {}
Text::Text(std::string_view english, std::vector<TextValue> values)
    : pattern_(english), values_(std::move(values)), translated_(true) {}
Text::Text(const Text&) = default;
Text::Text(Text&&) noexcept = default;
Text& Text::operator=(const Text&) = default;
Text& Text::operator=(Text&&) noexcept = default;
Text::~Text() = default;

std::string Text::in(Language language) const {
  if (!translated_) return pattern_;
  std::string_view rest = translation(pattern_, language);
  std::string out;
  for (size_t open = rest.find('{'); !values_.empty() && open != rest.npos; open = rest.find('{')) {
    out += rest.substr(0, open);
    rest.remove_prefix(open);
    const size_t close = std::min(rest.find('}'), rest.size() - 1), colon = std::min(rest.find(':'), close);
    const std::string_view name = rest.substr(1, colon - 1);
    size_t taken = 1;
    std::string_view as_it_is = rest.substr(0, 1);
    for (const TextValue& value : values_) {
      if (value.name != name || rest[close] != '}') continue;
      out += written(value, colon < close ? rest.substr(colon + 1, close - colon - 1) : std::string_view(), language);
      taken = close + 1;
      as_it_is = {};
      break;
    }
    out += as_it_is;
    rest.remove_prefix(taken);
  }
  return out += rest;
}

}  // namespace qkv
