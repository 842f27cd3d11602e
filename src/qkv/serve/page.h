// The page, which is part of the program: web/dist/index.html and its content-security-policy.
#pragma once

#include <optional>
#include <string_view>

namespace qkv::serve {

std::string_view page_html();
std::string_view page_policy();

/// The parts of the engine that a page without a server carries, each gzipped: web/dist/engine. Nothing in a program
/// that was built without them (docs/wasm.md).
struct PageEngine {
  std::string_view worker, wasm, chinese;
};
std::optional<PageEngine> page_engine();

}  // namespace qkv::serve
