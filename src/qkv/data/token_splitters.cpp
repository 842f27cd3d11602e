// Cutting texts into words.
#include "qkv/data/token_splitters.h"

#include <algorithm>

#include "qkv/data/characters.h"
#include "qkv/data/young_characters.h"

namespace qkv {
namespace {

uint32_t as_index(size_t at) { return static_cast<uint32_t>(at); }

// Cuts every word: cut(word, add) calls add(begin, end) for its parts, in order.
template <class Cut>
void cut_words(Words& words, Cut cut) {
  const std::string_view text = words.text.text();
  std::vector<Range> next;
  for (const Range word : words.words)
    cut(text.substr(word.begin, word.end - word.begin), [&](size_t begin, size_t end) {
      if (end > begin) next.push_back({as_index(word.begin + begin), as_index(word.begin + end)});
    });
  words.words = std::move(next);
}

// Parts of a word, matched or not, as a behavior asks.
class Parts {
 public:
  explicit Parts(SplitBehavior behavior) : behavior_(behavior) {}

  void add(size_t begin, size_t end, bool match) {
    if (begin == end) return;
    const bool joins = !parts_.empty() && parts_.back().end == begin &&
                       ((behavior_ == SplitBehavior::contiguous && match == last_) ||
                        (behavior_ == SplitBehavior::with_previous && match && !last_) ||
                        (behavior_ == SplitBehavior::with_next && !match && last_));
    last_ = match;
    if (behavior_ == SplitBehavior::removed && match) return;
    if (joins)
      parts_.back().end = as_index(end);
    else
      parts_.push_back({as_index(begin), as_index(end)});
  }

  const std::vector<Range>& parts() const { return parts_; }

 private:
  SplitBehavior behavior_;
  std::vector<Range> parts_;
  bool last_ = false;
};

// Cuts where match(word, at) finds something: it returns the end of a match at `at`, or `at`.
template <class Match>
void split_matches(Words& words, SplitBehavior behavior, bool invert, Match match) {
  cut_words(words, [&](std::string_view word, auto add) {
    Parts parts(behavior);
    size_t rest = 0;  // the beginning of what has not matched
    for (size_t at = 0; at < word.size();) {
      const size_t end = match(word, at);
      if (end == at) {
        at += character(word, at).bytes;
        continue;
      }
      parts.add(rest, at, invert);
      parts.add(at, end, !invert);
      rest = at = end;
    }
    parts.add(rest, word.size(), invert);
    for (const Range part : parts.parts()) add(part.begin, part.end);
  });
}

class PatternSplitter : public Splitter {
 public:
  PatternSplitter(TokenPattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(pattern), behavior_(behavior), invert_(invert) {}
  void apply(Words& words, bool) const override {
    split_matches(words, behavior_, invert_,
                  [&](std::string_view word, size_t at) { return match_pattern(pattern_, word, at); });
  }

 private:
  TokenPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class TextSplitter : public Splitter {
 public:
  TextSplitter(std::string text, SplitBehavior behavior, bool invert)
      : text_(std::move(text)), behavior_(behavior), invert_(invert) {}
  void apply(Words& words, bool) const override {
    split_matches(words, behavior_, invert_, [&](std::string_view word, size_t at) {
      return word.compare(at, text_.size(), text_) == 0 ? at + text_.size() : at;
    });
  }

 private:
  std::string text_;
  SplitBehavior behavior_;
  bool invert_;
};

bool is_bert_sign(int32_t code) {
  if (code >= 0x80) return is_punctuation(code) && !is_young_punctuation(code);
  return code > 32 && code < 127 && !is_letter(code) && !is_number(code);
}

size_t bert_sign(std::string_view word, size_t at) {
  const Character c = character(word, at);
  return is_bert_sign(c.code) ? at + c.bytes : at;
}

class BertSplitter : public Splitter {
 public:
  void apply(Words& words, bool) const override {
    cut_words(words, [](std::string_view word, auto add) {
      size_t begin = 0;
      for (size_t at = 0; at < word.size();) {
        const Character c = character(word, at);
        const bool space = is_space(c.code), sign = !space && is_bert_sign(c.code);
        if (space || sign) {
          add(begin, at);
          begin = at + c.bytes;
        }
        if (sign) add(at, begin);
        at += c.bytes;
      }
      add(begin, word.size());
    });
  }
};

class PunctuationSplitter : public Splitter {
 public:
  explicit PunctuationSplitter(SplitBehavior behavior) : behavior_(behavior) {}
  void apply(Words& words, bool) const override { split_matches(words, behavior_, false, bert_sign); }

 private:
  SplitBehavior behavior_;
};

class DigitSplitter : public Splitter {
 public:
  explicit DigitSplitter(bool each) : each_(each) {}
  void apply(Words& words, bool) const override {
    split_matches(words, each_ ? SplitBehavior::isolated : SplitBehavior::contiguous, false,
                  [](std::string_view word, size_t at) { return match_pattern(TokenPattern::digits, word, at); });
  }

 private:
  bool each_;
};

// Puts `before` before every word that does not begin with it.
void prepend(Words& words, const std::string& before) {
  const auto lacks = [&](Range word) {
    return words.text.text().compare(word.begin, before.size(), before) != 0 || word.end - word.begin < before.size();
  };
  if (std::none_of(words.words.begin(), words.words.end(), lacks)) return;
  AlignedText text;
  text.reserve(words.text.text().size() + before.size() * words.words.size());
  for (Range& word : words.words) {
    const uint32_t begin = as_index(text.text().size());
    const uint32_t source = words.text.source(word).begin;
    if (lacks(word)) text.append(before, {source, source});
    text.append(words.text, word);
    word = {begin, as_index(text.text().size())};
  }
  words.text = std::move(text);
}

class ByteLevelSplitter : public Splitter {
 public:
  ByteLevelSplitter(bool add_space, bool cut) : add_space_(add_space), cut_(cut) {}
  void apply(Words& words, bool) const override {
    if (add_space_) prepend(words, " ");
    if (!cut_) return;
    cut_words(words, [](std::string_view word, auto add) {
      for (size_t at = 0; at < word.size();) {
        const size_t end = match_pattern(TokenPattern::gpt2, word, at);
        add(at, end);
        at = end;
      }
    });
  }

 private:
  bool add_space_, cut_;
};

class MetaspaceSplitter : public Splitter {
 public:
  MetaspaceSplitter(std::string sign, PrependScheme scheme, bool cut)
      : sign_(std::move(sign)), scheme_(scheme), cut_(cut) {}

  void apply(Words& words, bool first) const override {
    AlignedText text;
    const std::string& old = words.text.text();
    text.reserve(old.size() + old.size() / 4 + 4);
    for (Range& word : words.words) {
      const uint32_t begin = as_index(text.text().size());
      for (uint32_t at = word.begin; at < word.end;) {
        const uint32_t end = as_index(std::min<size_t>(old.find(' ', at), word.end));
        text.append(words.text, {at, end});
        if (end < word.end) text.append(sign_, words.text.source({end, end + 1}));
        at = end + 1;
      }
      word = {begin, as_index(text.text().size())};
    }
    words.text = std::move(text);
    if (scheme_ == PrependScheme::always) prepend(words, sign_);
    if (scheme_ == PrependScheme::first && first && words.words.size() == 1) prepend(words, sign_);
    if (!cut_) return;
    split_matches(words, SplitBehavior::with_next, false, [&](std::string_view word, size_t at) {
      return word.compare(at, sign_.size(), sign_) == 0 ? at + sign_.size() : at;
    });
  }

 private:
  std::string sign_;
  PrependScheme scheme_;
  bool cut_;
};

class SplitterSequence : public Splitter {
 public:
  explicit SplitterSequence(Splitters steps) : steps_(std::move(steps)) {}
  void apply(Words& words, bool first) const override {
    for (const auto& step : steps_) step->apply(words, first);
  }

 private:
  Splitters steps_;
};

}  // namespace

std::unique_ptr<const Splitter> bert_splitter() { return std::make_unique<BertSplitter>(); }
std::unique_ptr<const Splitter> whitespace_splitter() {
  return pattern_splitter(TokenPattern::words, SplitBehavior::removed, true);
}
std::unique_ptr<const Splitter> blank_splitter() {
  return pattern_splitter(TokenPattern::blanks, SplitBehavior::removed, false);
}
std::unique_ptr<const Splitter> punctuation_splitter(SplitBehavior behavior) {
  return std::make_unique<PunctuationSplitter>(behavior);
}
std::unique_ptr<const Splitter> digit_splitter(bool each) { return std::make_unique<DigitSplitter>(each); }
std::unique_ptr<const Splitter> byte_level_splitter(bool add_space, bool cut) {
  return std::make_unique<ByteLevelSplitter>(add_space, cut);
}
std::unique_ptr<const Splitter> metaspace_splitter(std::string sign, PrependScheme scheme, bool cut) {
  return std::make_unique<MetaspaceSplitter>(std::move(sign), scheme, cut);
}
std::unique_ptr<const Splitter> text_splitter(std::string text, SplitBehavior behavior, bool invert) {
  return std::make_unique<TextSplitter>(std::move(text), behavior, invert);
}
std::unique_ptr<const Splitter> pattern_splitter(TokenPattern pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<PatternSplitter>(pattern, behavior, invert);
}
std::unique_ptr<const Splitter> splitter_sequence(Splitters steps) {
  return std::make_unique<SplitterSequence>(std::move(steps));
}

}  // namespace qkv
