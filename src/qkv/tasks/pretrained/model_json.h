// ModelJson: config.json and its neighbours in a pretrained folder, read with every mistake named.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// An object of a JSON file. A key whose value is null counts as absent; an error names the file, the key, the value
/// and what was expected.
class ModelJson {
 public:
  explicit ModelJson(const std::string& path);

  const std::string& path() const { return path_; }
  bool has(std::string_view key) const;
  /// Whole numbers in low ... high; without a default the key must be there.
  int64_t whole(std::string_view key, int64_t low, int64_t high, std::optional<int64_t> absent = {}) const;
  double number(std::string_view key, double low, double high, std::optional<double> absent = {}) const;
  bool flag(std::string_view key, bool absent) const;
  std::string word(std::string_view key, const std::string& absent = "") const;
  /// Refuses a flag that is not `wanted`: the model would need a part that we do not have.
  void expect(std::string_view key, bool wanted, bool absent) const;
  /// A list of whole numbers, a single number being a list of one; lists of lists of one number count as that list.
  /// Empty if the key is absent.
  std::vector<int64_t> wholes(std::string_view key, int64_t low, int64_t high) const;
  /// The words of a list of words; empty if the key is absent.
  std::vector<std::string> words(std::string_view key) const;
  /// The keys of an object of strings with their values, in order; empty if the key is absent.
  std::vector<std::pair<std::string, std::string>> strings(std::string_view key) const;
  /// The object under a key; nothing if the key is absent.
  std::optional<ModelJson> object(std::string_view key) const;
  /// Refuses the value of a key in the words of every other error, saying what was expected.
  [[noreturn]] void wrong(std::string_view key, const std::string& expected) const;

 private:
  struct Tree;
  ModelJson(std::string path, std::shared_ptr<const Tree> tree) : path_(std::move(path)), tree_(std::move(tree)) {}
  std::string path_;
  std::shared_ptr<const Tree> tree_;
};

}  // namespace qkv
