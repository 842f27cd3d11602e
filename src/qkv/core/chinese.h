// The Chinese catalogue, po/zh_CN.po. It is a part of the program, not of the library.
#pragma once

#include <string_view>

namespace qkv {

std::string_view chinese_catalogue();

}  // namespace qkv
