// The blocks of a lab's page as HTML.
#pragma once

#include <string>

#include "qkv/labs/render.h"

namespace qkv::labs {

/// A table in both languages.
std::string table_html(const Table& table, const std::string& css_class = "");
/// A lab with its steps and exercises; its heading comes from `anchors`.
std::string lab_html(const Finished& finished, const TourFacts& facts);
/// Its line of the contents, with its steps.
std::string contents_html(const Finished& finished);

}  // namespace qkv::labs
