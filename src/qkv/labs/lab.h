// A lab is a section of the chapter as a list of steps. Each step adds blocks to a page: text, formulas, numbers,
// figures, facts, and claims that are checked. A claim that fails makes the lab fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <variant>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/labs/exercises.h"
#include "qkv/plot/diagram.h"
#include "qkv/plot/figure.h"
#include "qkv/report/bench_link.h"

namespace qkv::labs {

struct Heading {
  Text text;
  const Exercise* exercise = nullptr;  // that it begins
};
struct Question {
  Text text;
};  // of an exercise
struct Answer {
  Text text;
};  // to it, in one sentence; the blocks up to the next heading are its evidence
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
/// A drawing of boxes and arrows.
struct Sketch {
  std::string name;
  Diagram diagram;
  Text caption;
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

using Block = std::variant<Heading, Paragraph, Formula, Output, Picture, Table, Claim, Fact, Question, Answer, Sketch>;

/// Options of a lab.
struct LabOptions {
  uint64_t seed = 0;
  std::string data = {};  // a file for the labs that take one; if empty, they use built-in data
  bool quick = false;     // leaves out the steps that train for long
};

class Page {
 public:
  explicit Page(LabOptions options) : options_(std::move(options)) {}

  void heading(Text text) { add(Heading{std::move(text)}); }
  /// The heading of an exercise, its question and its answer.
  void exercise(const std::string& number);
  void sketch(Sketch sketch) { add(std::move(sketch)); }
  /// A figure of the book beside ours; they become a table at the end of the page.
  void beside_the_book(Text what, std::string book, std::string ours) {
    beside_.push_back({std::move(what), std::move(book), std::move(ours)});
  }
  const std::vector<std::vector<Text>>& beside_the_book() const { return beside_; }
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
  bool quick() const { return options_.quick; }
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
  /// Seconds from the start of the page to each of its blocks, and to its end.
  const std::vector<double>& times() const { return times_; }
  /// The page is done: its time ends.
  void end();
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
  std::vector<double> times_;
  std::vector<std::vector<Text>> beside_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::map<std::type_index, std::shared_ptr<void>> shared_;
};

/// A part of a lab. The slow ones train for long; a quick tour leaves them out.
struct Step {
  Step(void (*step)(Page&)) : run(step) {}
  void (*run)(Page&);
  bool slow = false;
};
inline Step slow(void (*run)(Page&)) {
  Step step(run);
  step.slow = true;
  return step;
}

struct Lab {
  std::string section;  // "10.2"
  std::string name;     // "kernel-regression"
  Text title;
  std::vector<Step> steps;
  bool takes_data = false;  // it accepts LabOptions::data
  int64_t seconds = 1;      // it takes about this long on two cores
  int64_t quick = 0;        // the same without its slow steps, if it has some

  int64_t quick_seconds() const { return quick > 0 ? quick : seconds; }
};

/// All labs, in the order of the chapter.
const std::vector<Lab>& all_labs();
/// By name or section; null if there is none.
const Lab* find_lab(const std::string& name);

/// The address of each heading on a page, in order: "scoring-masked-softmax", "exercise-10.3.1".
std::vector<std::string> anchors(const Lab& lab, const Page& page);
/// What the section of a lab says, in a few sentences.
std::vector<Text> summary_of(const std::string& lab);
/// The diagrams that a lab begins with.
std::vector<Sketch> sketches_of(const std::string& lab);

/// Runs every step, between the diagrams of the section and its summary. Exercises of steps that a quick run leaves out
/// keep their question and answer. Throws if there is a file but the lab takes none.
Page run(const Lab& lab, const LabOptions& options, std::function<void(const Block&)> watch = {},
         std::function<void(const Text& what, double done)> at_work = {});
/// The same on a page that keeps what was added if a step throws.
void run(const Lab& lab, Page& page, std::function<void(const Block&)> watch,
         std::function<void(const Text& what, double done)> at_work);

}  // namespace qkv::labs
