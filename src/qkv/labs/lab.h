// A lab is a section of the chapter as a list of steps. A step writes onto a page what it shows: text, formulas,
// numbers, figures, facts, and claims that are checked. A claim that fails makes the lab fail.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <variant>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/plot/figure.h"

namespace qkv::labs {

struct Heading {
  Text text;
};
struct Paragraph {
  Text text;
};  // `code` and $formula$ inside
struct Formula {
  std::string tex;
};  // on a line of its own
struct Output {
  std::string text;
};  // as a program prints it
struct Picture {
  std::string name;
  Figure figure;
  Text caption;
};
struct Table {
  std::vector<Text> head;
  std::vector<std::vector<Text>> rows;
};
struct Claim {
  Text text;
  std::string measured;
  bool holds;
};
struct Fact {
  Text text;
  std::string measured;
};  // worth knowing, nothing that could fail; measured may be empty

using Block = std::variant<Heading, Paragraph, Formula, Output, Picture, Table, Claim, Fact>;

/// What a lab is started with.
struct LabOptions {
  uint64_t seed = 0;
  std::string data = {};  // a file for the labs that take one; empty: they use what is built in
};

class Page {
 public:
  explicit Page(LabOptions options) : options_(std::move(options)) {}

  void heading(Text text) { add(Heading{std::move(text)}); }
  void say(Text text) { add(Paragraph{std::move(text)}); }
  void formula(std::string tex) { add(Formula{std::move(tex)}); }
  void print(std::string text) { add(Output{std::move(text)}); }
  /// name becomes the file name, so it is unique in the lab: "identity".
  void draw(std::string name, Figure figure, Text caption) {
    add(Picture{std::move(name), std::move(figure), std::move(caption)});
  }
  /// Cells that read the same in both languages: numbers, formulas.
  void table(std::vector<Text> head, const std::vector<std::vector<std::string>>& rows);
  /// Cells in words.
  void word_table(std::vector<Text> head, std::vector<std::vector<Text>> rows) {
    add(Table{std::move(head), std::move(rows)});
  }
  /// A finding, and whether it held, with the numbers that decided.
  void claim(bool holds, Text text, std::string measured) { add(Claim{std::move(text), std::move(measured), holds}); }
  /// A number to know that is no finding: a count, a time, a shape.
  void fact(Text text, std::string measured = {}) { add(Fact{std::move(text), std::move(measured)}); }

  uint64_t seed() const { return options_.seed; }
  const std::string& data() const { return options_.data; }
  /// An object that the steps of a lab share, made when it is first asked for: models that several of them look at.
  template <class T>
  T& shared() {
    std::shared_ptr<void>& object = shared_[typeid(T)];
    if (!object) object = std::make_shared<T>();
    return *static_cast<T*>(object.get());
  }
  /// Frees what the steps shared.
  void forget() { shared_.clear(); }
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t claims() const;
  int64_t failed_claims() const;
  /// Called with every block as it is added: a screen that follows the lab.
  std::function<void(const Block&)> watch;
  /// Called, by one thread at a time, while a step works for long (work.h): what it does, and the share that is done; 1
  /// when it ends.
  std::function<void(const Text& what, double done)> at_work;

 private:
  void add(Block block);
  LabOptions options_;
  std::vector<Block> blocks_;
  std::map<std::type_index, std::shared_ptr<void>> shared_;
};

struct Lab {
  std::string section;  // "10.2"
  std::string name;     // "kernel-regression"
  Text title;
  std::vector<void (*)(Page&)> steps;
  bool takes_data = false;  // LabOptions::data is for it
  int64_t seconds = 1;      // that it takes, roughly, on two cores
};

/// All labs, in the order of the chapter.
const std::vector<Lab>& all_labs();
/// By name or section; null if there is none.
const Lab* find_lab(const std::string& name);

/// Runs every step. A file for a lab that takes none is refused.
Page run(const Lab& lab, const LabOptions& options, std::function<void(const Block&)> watch = {},
         std::function<void(const Text& what, double done)> at_work = {});

}  // namespace qkv::labs
