// A lab is a section of the chapter as a list of steps. A step writes onto a page what it shows: text, formulas, numbers, figures, and
// claims that are checked. A claim that fails makes the lab fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/plot/figure.h"

namespace qkv::labs {

struct Heading { Text text; };
struct Paragraph { Text text; };        // `code` and $formula$ inside
struct Formula { std::string tex; };    // on a line of its own
struct Output { std::string text; };    // as a program prints it
struct Picture { std::string name; Figure figure; Text caption; };
struct Table { std::vector<Text> head; std::vector<std::vector<Text>> rows; };
struct Claim { Text text; std::string measured; bool holds; };

using Block = std::variant<Heading, Paragraph, Formula, Output, Picture, Table, Claim>;

class Page {
 public:
  explicit Page(uint64_t seed) : seed_(seed) {}

  void heading(Text text) { add(Heading{std::move(text)}); }
  void say(Text text) { add(Paragraph{std::move(text)}); }
  void formula(std::string tex) { add(Formula{std::move(tex)}); }
  void print(std::string text) { add(Output{std::move(text)}); }
  /// name becomes the file name, so it is unique in the lab: "identity".
  void draw(std::string name, Figure figure, Text caption) { add(Picture{std::move(name), std::move(figure), std::move(caption)}); }
  /// Cells that read the same in both languages: numbers, formulas.
  void table(std::vector<Text> head, const std::vector<std::vector<std::string>>& rows);
  /// Cells in words.
  void word_table(std::vector<Text> head, std::vector<std::vector<Text>> rows) { add(Table{std::move(head), std::move(rows)}); }
  /// States something and whether it held, with the number that decided.
  void claim(bool holds, Text text, std::string measured) { add(Claim{std::move(text), std::move(measured), holds}); }

  uint64_t seed() const { return seed_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t claims() const;
  int64_t failed_claims() const;
  /// Called with every block as it is added: a screen that follows the lab.
  std::function<void(const Block&)> watch;

 private:
  void add(Block block);
  uint64_t seed_;
  std::vector<Block> blocks_;
};

struct Lab {
  std::string section;  // "10.2"
  std::string name;     // "kernel-regression"
  Text title;
  std::vector<void (*)(Page&)> steps;
};

/// All labs, in the order of the chapter.
const std::vector<Lab>& all_labs();
/// By name or section; null if there is none.
const Lab* find_lab(const std::string& name);

/// Runs every step.
Page run(const Lab& lab, uint64_t seed, std::function<void(const Block&)> watch = {});

}  // namespace qkv::labs
