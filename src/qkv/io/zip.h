// Reading zip archives: the central directory is read and checked at once, an entry on request. zip64 is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/io/file.h"

namespace QKV_API qkv {

class ZipFile {
 public:
  struct Entry {
    std::string name;
    uint16_t method = 0;  // 0 stored, 8 deflated
    uint32_t crc = 0;
    uint64_t packed = 0, size = 0, offset = 0;
  };

  /// `what` names the kind of file in errors: tr("a .zip file"), tr("an .npz file").
  ZipFile(const std::string& path, Text what);

  const std::string& path() const { return file_.path(); }
  /// In the order of the directory; names are distinct.
  const std::vector<Entry>& entries() const { return entries_; }
  /// The bytes of an entry, checked against its CRC.
  std::vector<std::byte> unpack(const Entry& entry) const;

  /// An entry read from beginning to end, part by part, so that only the requested part is in memory.
  class Stream {
   public:
    Stream(const ZipFile& zip, const Entry& entry);
    ~Stream();
    /// Fills `out` starting at `offset`, which must be where the last part ended.
    void read(uint64_t offset, std::span<std::byte> out);
    /// Fails unless everything has been read and the CRC is right.
    void finish();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  /// "FILE: ENTRY", the start of error messages.
  std::string label(const Entry& entry) const { return file_.path() + ": " + entry.name; }

 private:
  void read_directory();
  uint64_t find_directory_end() const;
  void read_entries(const std::vector<unsigned char>& directory, unsigned count);
  void check_layout(uint64_t directory_offset) const;

  InputFile file_;
  Text what_;
  std::vector<Entry> entries_;
};

/// For writing an archive: the CRC of bytes, and the bytes deflated.
uint32_t crc_of(std::span<const std::byte> bytes);
std::vector<std::byte> deflated(std::span<const std::byte> bytes);

/// "zlib 1.2.13".
std::string zip_library();

}  // namespace qkv
