// Checks for every lab: claims hold for any seed, text is in both languages, figures can be drawn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "qkv/core/catalogue.h"
#include "qkv/core/chinese.h"
#include "qkv/data/text.h"
#include "qkv/labs/formula.h"
#include "qkv/labs/markup.h"
#include "qkv/labs/render.h"
#include "qkv/labs/typeset.h"
#include "qkv/plot/svg.h"
#include "unit/plot/svg_reader.h"

namespace qkv::labs {

/// The program makes its catalogue known when it starts; so do these tests.
inline const bool chinese_is_known = [] {
  add_catalogue(Language::zh, std::string(chinese_catalogue()));
  return true;
}();

/// A text that only a test has, with its Chinese.
inline Text in_both(const std::string& english, const std::string& chinese) {
  add_catalogue(Language::zh, "msgid \"" + english + "\"\nmsgstr \"" + chinese + "\"\n");
  return Text(english, std::vector<TextValue>{});
}

/// As an English page shows it.
inline std::string english(const Text& text) { return typeset(text, Language::en); }

inline void expect_claims_hold(const Page& page) {
  EXPECT_GT(page.claims(), 0);
  for (const Block& block : page.blocks())
    if (auto* claim = std::get_if<Claim>(&block)) {
      EXPECT_TRUE(claim->holds) << "seed " << page.seed() << ": " << english(claim->text) << " ["
                                << english(claim->measured) << "]";
    }
}

/// The claim whose English text has these words.
inline const Claim& claim_with(const Page& page, const std::string& words) {
  for (const Block& block : page.blocks())
    if (const auto* claim = std::get_if<Claim>(&block); claim && english(claim->text).find(words) != std::string::npos)
      return *claim;
  throw std::runtime_error("no claim with the words " + words);
}

/// The fact whose English text has these words.
inline const Fact& fact_with(const Page& page, const std::string& words) {
  for (const Block& block : page.blocks())
    if (const auto* fact = std::get_if<Fact>(&block); fact && english(fact->text).find(words) != std::string::npos)
      return *fact;
  throw std::runtime_error("no fact with the words " + words);
}

/// All headings of the English page, one per line.
inline std::string headings(const Page& page) {
  std::string all;
  for (const Block& block : page.blocks())
    if (const auto* heading = std::get_if<Heading>(&block)) all += english(heading->text) + "\n";
  return all;
}

/// The headings of exercises appear in the order of these numbers, and none is missing.
inline void expect_exercises_in_order(const Page& page, const std::vector<std::string>& numbers) {
  const std::string all = headings(page);
  size_t last = 0;
  for (const std::string& number : numbers) {
    const size_t at = all.find(number, last);
    ASSERT_NE(at, all.npos) << number << " is missing or out of order in\n" << all;
    last = at;
  }
}

/// Everything said, claimed or stated in one language, its lines joined.
inline std::string everything_said(const Page& page, Language language) {
  std::string all;
  for (const Block& block : page.blocks()) {
    bool indent = false;  // continuation lines are indented
    for (const char c : plain(block, language)) {
      if (c == '\n' && language == Language::en && !indent) all += ' ';
      indent = c == '\n' || (indent && c == ' ');
      if (!indent) all += c;
    }
  }
  return all;
}

inline const Figure& figure_named(const Page& page, const std::string& name) {
  for (const Block& block : page.blocks())
    if (const auto* picture = std::get_if<Picture>(&block); picture && picture->name == name) return picture->figure;
  throw std::runtime_error("no figure " + name);
}

inline bool has_chinese(const std::string& text) {
  for (size_t i = 0; i + 2 < text.size(); ++i)
    if (static_cast<unsigned char>(text[i]) >= 0xE4 && static_cast<unsigned char>(text[i]) <= 0xE9) return true;
  return false;
}

// Both languages are present, the Chinese text has Chinese characters, and the formulas parse.
inline void expect_both(const Text& text) {
  const std::string en = text.in(Language::en), zh = text.in(Language::zh);
  EXPECT_FALSE(en.empty());
  EXPECT_TRUE(has_chinese(zh)) << zh;
  EXPECT_FALSE(has_chinese(en)) << en;
  struct Reader {
    std::string plain(std::string_view s) {
      EXPECT_EQ(s.find('$'), s.npos) << s;
      return std::string(s);
    }
    std::string code(std::string_view s) { return std::string(s); }
    std::string strong(std::string_view s) { return std::string(s); }
    std::string formula(std::string_view s) { return mathml(s, false) + plain_formula(s); }
  };
  for (const std::string* side : {&en, &zh}) EXPECT_FALSE(marked_up(*side, Reader{}).empty());
}

inline void expect_words_in_both_languages(const Page& page) {
  for (const Block& block : page.blocks()) {
    if (auto* b = std::get_if<Heading>(&block)) expect_both(b->text);
    if (auto* b = std::get_if<Paragraph>(&block)) expect_both(b->text);
    if (auto* b = std::get_if<Picture>(&block)) expect_both(b->caption);
    if (auto* b = std::get_if<Claim>(&block)) {
      expect_both(b->text);
      EXPECT_FALSE(b->measured.in(Language::zh).empty()) << english(b->text);
    }
    if (auto* b = std::get_if<Fact>(&block)) expect_both(b->text);
    if (auto* b = std::get_if<Table>(&block))
      for (const auto& row : b->rows) {
        EXPECT_EQ(row.size(), b->head.size());
        for (const Text& cell : row) EXPECT_FALSE(cell.in(Language::en).empty() || cell.in(Language::zh).empty());
      }
  }
}

/// All labels of a figure; those that are empty are left out.
inline std::vector<Label> labels_of(const Figure& figure) {
  std::vector<Label> all = {figure.title};
  for (const Panel& panel : figure.panels) {
    all.insert(all.end(), {panel.title, panel.short_title, panel.x.label, panel.y.label});
    if (const auto* c = std::get_if<Curves>(&panel.content)) {
      for (const Series& s : c->series) all.push_back(s.name);
      for (const Band& b : c->bands) all.push_back(b.name);
    } else if (const auto* b = std::get_if<Bars>(&panel.content)) {
      all.insert(all.end(), b->categories.begin(), b->categories.end());
      for (const NamedValues& s : b->series) all.push_back(s.name);
    } else if (const auto* h = std::get_if<Histogram>(&panel.content)) {
      for (const NamedValues& s : h->samples) all.push_back(s.name);
    }
  }
  std::erase_if(all, [](const Label& label) { return label.empty(); });
  return all;
}

/// The words of two Latin letters or more that are not names.
inline std::vector<std::string> english_words(const std::string& text) {
  static const std::set<std::string> kNames = {"CNN",      "RNN",    "GRU",          "LSTM",    "Transformer", "Parzen",
                                               "Nadaraya", "Watson", "Epanechnikov", "softmax", "log"};
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      word += c;
      continue;
    }
    if (word.size() > 1 && !kNames.contains(word)) words.push_back(word);
    word.clear();
  }
  return words;
}

// Labels with English words are marked for translation, and their Chinese has no English words.
inline void expect_labels_in_both_languages(const Figure& figure, const std::string& name) {
  for (const Label& label : labels_of(figure)) {
    const std::string en = label.in(Language::en), zh = label.in(Language::zh);
    EXPECT_FALSE(has_chinese(en)) << name << ": " << en;
    EXPECT_TRUE(english_words(zh).empty()) << name << ": " << zh;
    EXPECT_TRUE(english_words(en).empty() || has_chinese(zh)) << name << ": " << zh;
  }
}

inline void expect_figures_draw(const Page& page) {
  std::set<std::string> names;
  for (const Block& block : page.blocks())
    if (auto* b = std::get_if<Picture>(&block)) {
      EXPECT_TRUE(names.insert(b->name).second) << b->name << " names two figures";
      expect_labels_in_both_languages(b->figure, b->name);
      for (const Language language : {Language::en, Language::zh}) {
        const std::string drawn = svg(b->figure, language);
        EXPECT_NE(drawn.find("</svg>"), drawn.npos) << b->name;
        const drawings::SvgText read = drawings::read_svg(drawn);
        EXPECT_GE(drawings::smallest_type(read, kPageWidth), 9)
            << b->name << " is " << read.elements[0].number("width") << " pixels wide";
        for (const drawings::Element& e : read.named("text"))
          for (const char* typed : {" - ", "sqrt(", "q.k", "^2"})
            EXPECT_EQ(e.text.find(typed), e.text.npos) << b->name << ": " << e.text;
      }
    }
  EXPECT_GT(names.size(), 0u);
}

inline void expect_utf8(const std::string& text, const std::string& what) {
  const size_t bad = find_invalid_utf8(text);
  EXPECT_EQ(bad, text.npos) << what << " is not UTF-8 at byte " << bad << ", after \""
                            << text.substr(bad < 60 ? 0 : bad - 60, std::min<size_t>(bad, 60)) << "\"";
}

// In both languages every figure is linked and every formula and table is present; all of it is UTF-8.
inline void expect_renders(const Lab& lab, const Page& page) {
  for (Language language : {Language::en, Language::zh}) {
    const std::string note = markdown(lab, page, language), report = html_report({{&lab, page, 1}}, language);
    expect_utf8(note, lab.name + ".md");
    expect_utf8(report, lab.name + " as HTML");
    EXPECT_NE(note.find("# " + lab.section + " " + lab.title.in(language)), note.npos);
    EXPECT_NE(report.find(lab.title.in(language)), report.npos);
    for (const Block& block : page.blocks()) {
      if (auto* b = std::get_if<Picture>(&block)) {
        EXPECT_NE(note.find("](" + b->name + ".svg)"), note.npos);
        EXPECT_NE(report.find(lab.name + "-" + b->name), report.npos);
      }
      if (auto* b = std::get_if<Formula>(&block)) {
        EXPECT_NE(note.find("$$" + b->tex + "$$"), note.npos);
        const std::string alone = mathml(b->tex, true), in_line = aligned_mathml({b->tex});
        const std::string row =
            in_line.substr(in_line.find("<mtr>"), in_line.find("</mtable>") - in_line.find("<mtr>"));
        EXPECT_TRUE(report.find(alone) != report.npos || report.find(row) != report.npos) << b->tex;
      }
      if (auto* b = std::get_if<Heading>(&block)) {
        EXPECT_NE(note.find("## " + typeset(b->text, language)), note.npos);
      }
      const std::string shown = plain(block, language);
      EXPECT_FALSE(shown.empty());
      expect_utf8(shown, lab.name + " as text");
    }
  }
}

/// Everything that the English page prints as a program does.
inline std::string everything_printed(const Page& page) {
  std::string all;
  for (const Block& block : page.blocks())
    if (auto* b = std::get_if<Output>(&block)) all += b->text.in(Language::en) + "\n";
  return all;
}

}  // namespace qkv::labs
