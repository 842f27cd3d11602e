// Memory that files are mapped to, given back.
#pragma once

#include <cstddef>

namespace qkv {

/// Lets the system take back the whole pages among these bytes that are still the pages of a mapped file: they come
/// from the file again when they are next read. Other memory, and pages that were written to, are left as they are.
void give_back_pages(const void* begin, size_t bytes);

}  // namespace qkv
