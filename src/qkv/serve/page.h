// The page, which is part of the program: web/dist/index.html and its content-security-policy.
#pragma once

#include <string_view>

namespace qkv::serve {

std::string_view page_html();
std::string_view page_policy();

}  // namespace qkv::serve
