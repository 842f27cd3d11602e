// BERT's rules, normal forms and plain replacements, each with the source of every byte.
#include "qkv/data/token_normalizers.h"

#include <utf8proc.h>

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/data/characters.h"
#include "qkv/data/young_characters.h"

namespace qkv {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

Range at_character(size_t at, const Character& c) {
  return {static_cast<uint32_t>(at), static_cast<uint32_t>(at + c.bytes)};
}

// Goes through the characters of a text and builds the next one: change(c, bytes, out) appends what becomes of c.
template <class Change>
void rebuild(AlignedText& text, Change change) {
  AlignedText out;
  out.reserve(text.text().size());
  const std::string& old = text.text();
  for (size_t at = 0; at < old.size();) {
    const Character c = character(old, at);
    change(c, at_character(at, c), out);
    at += c.bytes;
  }
  text = std::move(out);
}

void append_code(AlignedText& out, int32_t code, Range source) {
  std::string bytes;
  append_character(bytes, code);
  out.append(bytes, source);
}

// The full decomposition of a character. A character has at most 18 in its compatible form.
size_t decompose(int32_t code, bool compatible, int32_t (&out)[32]) {
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : static_cast<utf8proc_option_t>(0)));
  int last_class = 0;
  const auto count = utf8proc_decompose_char(code, out, 32, options, &last_class);
  if (count >= 1 && count <= 32) return static_cast<size_t>(count);
  out[0] = code;
  return 1;
}

struct Part {
  int32_t code;
  Range source;
};

int combining_class(int32_t code) { return static_cast<int>(utf8proc_get_property(code)->combining_class); }

// Marks in a row in their canonical order. utf8proc does this by swapping neighbours, which takes quadratic time.
void order_marks(std::vector<Part>& parts) {
  const auto is_starter = [](const Part& part) { return combining_class(part.code) == 0; };
  for (auto begin = parts.begin(); begin != parts.end();) {
    begin = std::find_if_not(begin, parts.end(), is_starter);
    const auto end = std::find_if(begin, parts.end(), is_starter);
    std::stable_sort(begin, end,
                     [](const Part& a, const Part& b) { return combining_class(a.code) < combining_class(b.code); });
    begin = end;
  }
}

void append_parts(AlignedText& out, std::vector<Part>& parts) {
  order_marks(parts);
  for (const Part& part : parts) append_code(out, part.code, part.source);
  parts.clear();
}

// Whether a character may compose with the one before it: marks, and the later parts of Hangul syllables.
bool may_compose(int32_t code) {
  return code >= 0x300 && (is_mark(code) || (code >= 0x1160 && code <= 0x11ff) || (code >= 0x3131 && code <= 0x318e) ||
                           (code >= 0xd7b0 && code <= 0xd7ff) || (code >= 0xff9e && code <= 0xffdc));
}

class NormalFormNormalizer : public Normalizer {
 public:
  explicit NormalFormNormalizer(NormalForm form)
      : compose_(form == NormalForm::nfc || form == NormalForm::nfkc),
        compatible_(form == NormalForm::nfkc || form == NormalForm::nfkd) {}

  void apply(AlignedText& text) const override {
    if (is_ascii(text.text())) return;
    std::vector<Part> parts;  // of characters that may compose with each other
    Range cluster;
    AlignedText out;
    out.reserve(text.text().size());
    const std::string& old = text.text();
    for (size_t at = 0; at < old.size();) {
      const Character c = character(old, at);
      const Range source = text.source(at_character(at, c));
      if (!may_compose(c.code)) {
        finish(out, parts, cluster);
        cluster = source;
      }
      cluster.end = source.end;
      int32_t codes[32];
      const size_t count = decompose(c.code, compatible_, codes);
      for (size_t i = 0; i < count; ++i) parts.push_back({codes[i], source});
      at += c.bytes;
    }
    finish(out, parts, cluster);
    text = std::move(out);
  }

 private:
  void finish(AlignedText& out, std::vector<Part>& parts, Range cluster) const {
    if (parts.size() == 1 || !compose_) return append_parts(out, parts);
    order_marks(parts);
    std::vector<int32_t> codes;
    for (const Part& part : parts) codes.push_back(part.code);
    const auto count = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                                static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    codes.resize(count > 0 ? static_cast<size_t>(count) : 0);
    for (const int32_t code : codes) append_code(out, code, cluster);
    parts.clear();
  }

  bool compose_, compatible_;
};

void lower(AlignedText& text) {
  if (is_ascii(text.text())) {
    for (char& c : text.bytes()) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  rebuild(text, [&](const Character& c, Range bytes, AlignedText& out) {
    const int32_t lowered = lower_case(c.code);
    if (c.code == 0x130)  // the only letter that becomes two characters
      out.append("i\xCC\x87", text.source(bytes));
    else if (lowered == c.code)
      out.append(text, bytes);
    else
      append_code(out, lowered, text.source(bytes));
  });
}

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text) const override { lower(text); }
};

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    if (is_ascii(text.text())) return;
    rebuild(text, [&](const Character& c, Range bytes, AlignedText& out) {
      if (!is_mark(c.code)) out.append(text, bytes);
    });
  }
};

class Bert : public Normalizer {
 public:
  explicit Bert(const BertRules& rules) : rules_(rules) {}

  void apply(AlignedText& text) const override {
    const std::string& bytes = text.text();
    const bool plain = std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= 32 && c < 127; });
    if (!plain) {
      if (rules_.clean) clean(text);
      if (rules_.cjk) space_out(text);
      if (rules_.strip_accents && !is_ascii(text.text())) strip(text);
    }
    if (rules_.lower) lower(text);
  }

 private:
  static void clean(AlignedText& text) {
    rebuild(text, [&](const Character& c, Range bytes, AlignedText& out) {
      if (c.code == 0xfffd || (is_control(c.code) && !is_young_control(c.code))) return;
      if (c.code != ' ' && is_space(c.code))
        out.append(" ", text.source(bytes));
      else
        out.append(text, bytes);
    });
  }

  static bool is_cjk(int32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
  }

  static void space_out(AlignedText& text) {
    rebuild(text, [&](const Character& c, Range bytes, AlignedText& out) {
      const bool cjk = is_cjk(c.code);
      const Range source = text.source(bytes);
      if (cjk) out.append(" ", {source.begin, source.begin});
      out.append(text, bytes);
      if (cjk) out.append(" ", {source.end, source.end});
    });
  }

  static void strip(AlignedText& text) {
    std::vector<Part> marks;  // those that stay
    rebuild(text, [&](const Character& c, Range bytes, AlignedText& next) {
      int32_t codes[32];
      const size_t count = decompose(c.code, false, codes);
      for (size_t i = 0; i < count; ++i) {
        if (is_nonspacing_mark(codes[i]) && !is_young_mark(codes[i])) continue;
        if (combining_class(codes[i]) == 0) append_parts(next, marks);
        if (combining_class(codes[i]) == 0)
          append_code(next, codes[i], text.source(bytes));
        else
          marks.push_back({codes[i], text.source(bytes)});
      }
      if (bytes.end == text.text().size()) append_parts(next, marks);
    });
  }

  BertRules rules_;
};

class StripBlanks : public Normalizer {
 public:
  StripBlanks(bool left, bool right) : left_(left), right_(right) {}
  void apply(AlignedText& text) const override {
    const std::string& bytes = text.text();
    size_t begin = 0, end = bytes.size();
    for (Character c; left_ && begin < end && is_space((c = character(bytes, begin)).code);) begin += c.bytes;
    for (Character c; right_ && end > begin && is_space((c = character_before(bytes, end)).code);) end -= c.bytes;
    text = text.part({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }

 private:
  bool left_, right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string before) : before_(std::move(before)) {}
  void apply(AlignedText& text) const override {
    if (text.text().empty()) return;
    const uint32_t begin = text.source({0, 0}).begin;
    AlignedText out;
    out.reserve(before_.size() + text.text().size());
    out.append(before_, {begin, begin});
    out.append(text, {0, static_cast<uint32_t>(text.text().size())});
    text = std::move(out);
  }

 private:
  std::string before_;
};

class Replace : public Normalizer {
 public:
  Replace(std::string what, std::string with, bool runs)
      : what_(std::move(what)), with_(std::move(with)), runs_(runs) {}
  void apply(AlignedText& text) const override {
    const std::string& old = text.text();
    const std::string first = runs_ ? what_ + what_ : what_;
    if (what_.empty() || old.find(first) == std::string::npos) return;
    AlignedText out;
    out.reserve(old.size());
    for (size_t at = 0; at < old.size();) {
      const size_t found = std::min(old.find(first, at), old.size());
      out.append(text, {static_cast<uint32_t>(at), static_cast<uint32_t>(found)});
      size_t end = found == old.size() ? found : found + first.size();
      while (runs_ && end > found && old.compare(end, what_.size(), what_) == 0) end += what_.size();
      if (end > found) out.append(with_, text.source({static_cast<uint32_t>(found), static_cast<uint32_t>(end)}));
      at = end;
    }
    text = std::move(out);
  }

 private:
  std::string what_, with_;
  bool runs_;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(Normalizers steps) : steps_(std::move(steps)) {}
  void apply(AlignedText& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  Normalizers steps_;
};

}  // namespace

std::string Normalizer::applied(std::string_view text) const {
  AlignedText changed(text, 0);
  apply(changed);
  return changed.text();
}

std::unique_ptr<const Normalizer> bert_normalizer(const BertRules& rules) { return std::make_unique<Bert>(rules); }
std::unique_ptr<const Normalizer> normal_form(NormalForm form) { return std::make_unique<NormalFormNormalizer>(form); }
std::unique_ptr<const Normalizer> lowercase_normalizer() { return std::make_unique<Lowercase>(); }
std::unique_ptr<const Normalizer> strip_accents_normalizer() { return std::make_unique<StripAccents>(); }
std::unique_ptr<const Normalizer> strip_blanks_normalizer(bool left, bool right) {
  return std::make_unique<StripBlanks>(left, right);
}
std::unique_ptr<const Normalizer> prepend_normalizer(std::string text) {
  return std::make_unique<Prepend>(std::move(text));
}
std::unique_ptr<const Normalizer> replace_normalizer(std::string what, std::string with, bool runs) {
  return std::make_unique<Replace>(std::move(what), std::move(with), runs);
}
std::unique_ptr<const Normalizer> normalizer_sequence(Normalizers steps) {
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace qkv
