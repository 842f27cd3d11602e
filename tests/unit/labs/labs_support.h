// What every lab must keep: claims for any seed, words in both languages, figures that can be drawn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "qkv/data/text.h"
#include "qkv/labs/formula.h"
#include "qkv/labs/markup.h"
#include "qkv/labs/render.h"
#include "qkv/plot/svg.h"
#include "unit/plot/svg_reader.h"

namespace qkv::labs {

inline void expect_claims_hold(const Page& page) {
  EXPECT_GT(page.claims(), 0);
  for (const Block& block : page.blocks())
    if (auto* claim = std::get_if<Claim>(&block)) {
      EXPECT_TRUE(claim->holds) << "seed " << page.seed() << ": " << claim->text.en << " [" << claim->measured << "]";
    }
}

/// The claim whose English text has these words.
inline const Claim& claim_with(const Page& page, const std::string& words) {
  for (const Block& block : page.blocks())
    if (const auto* claim = std::get_if<Claim>(&block); claim && claim->text.en.find(words) != std::string::npos)
      return *claim;
  throw std::runtime_error("no claim with the words " + words);
}

/// The fact whose English text has these words.
inline const Fact& fact_with(const Page& page, const std::string& words) {
  for (const Block& block : page.blocks())
    if (const auto* fact = std::get_if<Fact>(&block); fact && fact->text.en.find(words) != std::string::npos)
      return *fact;
  throw std::runtime_error("no fact with the words " + words);
}

/// All headings of the English page, one per line.
inline std::string headings(const Page& page) {
  std::string all;
  for (const Block& block : page.blocks())
    if (const auto* heading = std::get_if<Heading>(&block)) all += heading->text.en + "\n";
  return all;
}

/// The headings that begin an exercise stand in the order of these numbers, and none is missing.
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
    bool indent = false;  // a line that goes on below is indented
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

// Both languages there, the Chinese one Chinese, the formulas readable.
inline void expect_both(const Text& text) {
  EXPECT_FALSE(text.en.empty());
  EXPECT_TRUE(has_chinese(text.zh)) << text.zh;
  EXPECT_FALSE(has_chinese(text.en)) << text.en;
  struct Reader {
    std::string plain(std::string_view s) {
      EXPECT_EQ(s.find('$'), s.npos) << s;
      return std::string(s);
    }
    std::string code(std::string_view s) { return std::string(s); }
    std::string strong(std::string_view s) { return std::string(s); }
    std::string formula(std::string_view s) { return mathml(s, false) + plain_formula(s); }
  };
  for (const std::string* side : {&text.en, &text.zh}) EXPECT_FALSE(marked_up(*side, Reader{}).empty());
}

inline void expect_words_in_both_languages(const Page& page) {
  for (const Block& block : page.blocks()) {
    if (auto* b = std::get_if<Heading>(&block)) expect_both(b->text);
    if (auto* b = std::get_if<Paragraph>(&block)) expect_both(b->text);
    if (auto* b = std::get_if<Picture>(&block)) expect_both(b->caption);
    if (auto* b = std::get_if<Claim>(&block)) {
      expect_both(b->text);
      EXPECT_FALSE(b->measured.empty()) << b->text.en;
    }
    if (auto* b = std::get_if<Fact>(&block)) expect_both(b->text);
    if (auto* b = std::get_if<Table>(&block))
      for (const auto& row : b->rows) {
        EXPECT_EQ(row.size(), b->head.size());
        for (const Text& cell : row) EXPECT_FALSE(cell.en.empty() || cell.zh.empty());
      }
  }
}

inline void expect_figures_draw(const Page& page) {
  std::set<std::string> names;
  for (const Block& block : page.blocks())
    if (auto* b = std::get_if<Picture>(&block)) {
      EXPECT_TRUE(names.insert(b->name).second) << b->name << " names two figures";
      const std::string drawn = svg(b->figure);
      EXPECT_NE(drawn.find("</svg>"), drawn.npos) << b->name;
      const drawings::SvgText read = drawings::read_svg(drawn);
      EXPECT_GE(drawings::smallest_type(read, kPageWidth), 9)
          << b->name << " is " << read.elements[0].number("width") << " pixels wide";
      for (const drawings::Element& e : read.named("text"))
        for (const char* typed : {" - ", "sqrt(", "q.k", "^2"})
          EXPECT_EQ(e.text.find(typed), e.text.npos) << b->name << ": " << e.text;
    }
  EXPECT_GT(names.size(), 0u);
}

inline void expect_utf8(const std::string& text, const std::string& what) {
  const size_t bad = find_invalid_utf8(text);
  EXPECT_EQ(bad, text.npos) << what << " is not UTF-8 at byte " << bad << ", after \""
                            << text.substr(bad < 60 ? 0 : bad - 60, std::min<size_t>(bad, 60)) << "\"";
}

// Every figure is linked, every formula and table is there, in both languages; all of it is UTF-8.
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
        EXPECT_NE(note.find("## " + b->text.in(language)), note.npos);
      }
      const std::string shown = plain(block, language);
      EXPECT_FALSE(shown.empty());
      expect_utf8(shown, lab.name + " as text");
    }
  }
}

inline std::string everything_printed(const Page& page) {
  std::string all;
  for (const Block& block : page.blocks())
    if (auto* b = std::get_if<Output>(&block)) all += b->text + "\n";
  return all;
}

}  // namespace qkv::labs
