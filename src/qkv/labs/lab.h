// A lab is a section of the chapter as a list of steps. Each step adds blocks to a page: text, formulas, numbers,
// figures, facts, and claims that are checked. A claim that fails makes the lab fail.
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
#include "qkv/report/bench_link.h"

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
  Text text;
};  // as a program prints it
struct Picture {
  std::string name;
  Figure figure;
  Text caption;
  std::string explore = {};  // the address of a bench that shows the same numbers, "#regression?h=1", or nothing
};
struct Table {
  std::vector<Text> head;
  std::vector<std::vector<Text>> rows;
};
struct Claim {
  Text text, measured;
  bool holds;
};
struct Fact {
  Text text, measured;
};  // worth knowing, but nothing that could fail; measured may be empty

using Block = std::variant<Heading, Paragraph, Formula, Output, Picture, Table, Claim, Fact>;

/// Options of a lab.
struct LabOptions {
  uint64_t seed = 0;
  std::string data = {};  // a file for the labs that take one; if empty, they use built-in data
};

class Page {
 public:
  explicit Page(LabOptions options) : options_(std::move(options)) {}

  void heading(Text text) { add(Heading{std::move(text)}); }
  void say(Text text) { add(Paragraph{std::move(text)}); }
  void formula(std::string tex) { add(Formula{std::move(tex)}); }
  void print(Text text) { add(Output{std::move(text)}); }
  /// `name` becomes the file name, so it must be unique in the lab: "identity".
  void draw(std::string name, Figure figure, Text caption) {
    add(Picture{std::move(name), std::move(figure), std::move(caption)});
  }
  /// With the bench of the explorer that shows the same numbers.
  void draw(std::string name, Figure figure, Text caption, const report::BenchLink& explore) {
    add(Picture{std::move(name), std::move(figure), std::move(caption), explore.address()});
  }
  /// Cells that read the same in every language: numbers, formulas.
  void table(std::vector<Text> head, const std::vector<std::vector<std::string>>& rows);
  /// Cells with words.
  void word_table(std::vector<Text> head, std::vector<std::vector<Text>> rows) {
    add(Table{std::move(head), std::move(rows)});
  }
  /// A finding, whether it holds, and the numbers that decided.
  void claim(bool holds, Text text, Text measured) { add(Claim{std::move(text), std::move(measured), holds}); }
  /// A number worth knowing that is not a finding: a count, a time, a shape.
  void fact(Text text, Text measured = {}) { add(Fact{std::move(text), std::move(measured)}); }

  uint64_t seed() const { return options_.seed; }
  const std::string& data() const { return options_.data; }
  /// An object that the steps of a lab share, created on first use: models that several of them examine.
  template <class T>
  T& shared() {
    std::shared_ptr<void>& object = shared_[typeid(T)];
    if (!object) object = std::make_shared<T>();
    return *static_cast<T*>(object.get());
  }
  /// Frees the objects that the steps shared.
  void forget() { shared_.clear(); }
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t claims() const;
  int64_t failed_claims() const;
  /// Called with every block as it is added, so that a screen can follow the lab.
  std::function<void(const Block&)> watch;
  /// Called, by one thread at a time, during a long step (work.h): what it is doing, and the fraction done; 1 when it
  /// ends.
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
  bool takes_data = false;  // it accepts LabOptions::data
  int64_t seconds = 1;      // it takes about this long on two cores
};

/// All labs, in the order of the chapter.
const std::vector<Lab>& all_labs();
/// By name or section; null if there is none.
const Lab* find_lab(const std::string& name);

/// Runs every step. Throws if there is a file but the lab takes none.
Page run(const Lab& lab, const LabOptions& options, std::function<void(const Block&)> watch = {},
         std::function<void(const Text& what, double done)> at_work = {});

}  // namespace qkv::labs
