// .npy, NumPy's array file: versions 1.0 to 3.0, little-endian, C and Fortran order in, C order out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/io/file.h"

namespace QKV_API qkv {

/// The part of the file before the elements.
struct NpyHeader {
  Dtype dtype = Dtype::float32;
  Shape shape;
  bool fortran_order = false;
  uint64_t data_offset = 0;  // bytes before the first element
  uint64_t data_bytes = 0;
};

/// Reads `out.size()` bytes at an offset.
using ReadBytes = std::function<void(uint64_t offset, std::span<std::byte> out)>;

/// Parses the header of an .npy of `size` bytes in total; the rest must be exactly the elements. Every error message
/// starts with `name`.
NpyHeader read_npy_header(const std::string& name, uint64_t size, const ReadBytes& read);

/// The whole array in C order.
Array read_npy_array(const std::string& name, uint64_t size, const ReadBytes& read);

/// The bytes NumPy writes before the elements of this array (version 1.0, padded to a multiple of 64).
std::string npy_header_text(const Array& array);

Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);
void write_npy(const std::string& path, const Tensor& values);
void write_npy(const std::string& path, const Ids& values);

}  // namespace qkv
