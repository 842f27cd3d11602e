// Filling the fields of two texts.
#include "qkv/labs/both.h"

#include <fmt/args.h>

namespace qkv::labs {

Text filled(std::string_view en, std::string_view zh, const std::vector<Field>& values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const Field& value : values) std::visit([&](const auto& v) { store.push_back(v); }, value);
  return {fmt::vformat(en, store), fmt::vformat(zh, store)};
}

}  // namespace qkv::labs
