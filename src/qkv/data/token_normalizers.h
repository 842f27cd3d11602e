// Normalizers: what tokenizers change in a text before they cut it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/aligned_text.h"

namespace qkv {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(AlignedText& text) const = 0;
  /// The same for a text whose source is not needed.
  std::string applied(std::string_view text) const;
};

using Normalizers = std::vector<std::unique_ptr<const Normalizer>>;

struct BertRules {
  bool clean = true;  // no control characters; every blank is a space
  bool cjk = true;    // spaces around Chinese characters
  bool strip_accents = true;
  bool lower = true;
};

enum class NormalForm { nfc, nfd, nfkc, nfkd };

std::unique_ptr<const Normalizer> bert_normalizer(const BertRules& rules);
std::unique_ptr<const Normalizer> normal_form(NormalForm form);
std::unique_ptr<const Normalizer> lowercase_normalizer();
/// Removes every mark: of letters that NFD has decomposed, for example.
std::unique_ptr<const Normalizer> strip_accents_normalizer();
std::unique_ptr<const Normalizer> strip_blanks_normalizer(bool left, bool right);
/// Puts a text before every text that is not empty.
std::unique_ptr<const Normalizer> prepend_normalizer(std::string text);
/// Replaces a text; with `runs`, two or more of it in a row by one `with`.
std::unique_ptr<const Normalizer> replace_normalizer(std::string what, std::string with, bool runs);
std::unique_ptr<const Normalizer> normalizer_sequence(Normalizers steps);

}  // namespace qkv
