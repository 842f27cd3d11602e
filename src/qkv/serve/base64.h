// Bytes as text.
#pragma once

#include <string>
#include <string_view>

namespace qkv::serve {

std::string base64(std::string_view bytes);

}  // namespace qkv::serve
