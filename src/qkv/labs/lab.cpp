// Pages, and the list of labs.
#include "qkv/labs/lab.h"

#include <algorithm>
#include <cctype>

#include "qkv/core/check.h"
#include "qkv/data/translation.h"
#include "qkv/labs/sections.h"

namespace qkv::labs {

namespace {

constexpr int64_t kFewestPairs = 40;  // of a corpus that a lab trains on

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// "Masked softmax" -> "masked-softmax".
std::string slug(const std::string& words) {
  std::string out;
  for (const char c : words)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

bool has_exercise(const Page& page, const Exercise& exercise) {
  return std::any_of(page.blocks().begin(), page.blocks().end(), [&](const Block& block) {
    const auto* heading = std::get_if<Heading>(&block);
    return heading && heading->exercise == &exercise;
  });
}

void add_left_out(Page& page, const Lab& lab) {
  int64_t steps = 0;
  for (const Step& step : lab.steps) steps += step.slow;
  if (steps == 0) return;
  for (const Exercise& exercise : all_exercises())
    if (exercise.lab == lab.name && !has_exercise(page, exercise)) {
      page.exercise(exercise.numbers[0]);
      page.say(tr("The quick tour leaves the evidence out; `qkv lab {lab}` makes it.", "lab"_a = lab.name));
    }
  page.heading(tr("What the quick tour left out"));
  page.say(
      tr("Steps that train for long: {left} of {steps}. `qkv lab {lab}` runs them all, in about {seconds} seconds.",
         "left"_a = steps, "steps"_a = lab.steps.size(), "lab"_a = lab.name, "seconds"_a = lab.seconds));
}

}  // namespace

void Page::add(Block block) {
  blocks_.push_back(std::move(block));
  times_.push_back(since(start_));
  if (watch) watch(blocks_.back());
}

void Page::table(std::vector<Text> head, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<Text>> cells;
  for (const auto& row : rows) {
    cells.emplace_back();
    for (const std::string& cell : row) cells.back().emplace_back(cell);
  }
  add(Table{std::move(head), std::move(cells)});
}

void Page::exercise(const std::string& number) {
  const Exercise* exercise = find_exercise(number);
  check(exercise, "[Page::exercise] no exercise ", number);
  add(Heading{exercise->heading, exercise});
  add(Question{exercise->question});
  add(Answer{exercise->answer});
}

void Page::end() { times_.push_back(since(start_)); }

int64_t Page::claims() const {
  return std::count_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return std::holds_alternative<Claim>(b); });
}

int64_t Page::failed_claims() const {
  return std::count_if(blocks_.begin(), blocks_.end(),
                       [](const Block& b) { return std::holds_alternative<Claim>(b) && !std::get<Claim>(b).holds; });
}

const std::vector<Lab>& all_labs() {
  static const std::vector<Lab> labs = {engine_lab(),      cues_lab(),       regression_lab(),     scoring_lab(),
                                        bahdanau_lab(),    multi_head_lab(), self_attention_lab(), transformer_lab(),
                                        long_inputs_lab(), vision_lab(),     language_lab()};
  return labs;
}

const Lab* find_lab(const std::string& name) {
  for (const Lab& lab : all_labs())
    if (lab.name == name || lab.section == name) return &lab;
  // Sections 11.1 to 11.7 of the English edition are those of chapter 10.
  return name.starts_with("11.") ? find_lab("10." + name.substr(3)) : nullptr;
}

std::vector<std::string> anchors(const Lab& lab, const Page& page) {
  std::vector<std::string> out;
  for (const Block& block : page.blocks())
    if (const auto* heading = std::get_if<Heading>(&block)) {
      std::string anchor = heading->exercise ? anchor_of_exercise(heading->exercise->numbers[0])
                                             : lab.name + "-" + slug(heading->text.in(Language::en));
      while (std::find(out.begin(), out.end(), anchor) != out.end()) anchor += "-again";
      out.push_back(std::move(anchor));
    }
  return out;
}

Page run(const Lab& lab, const LabOptions& options, std::function<void(const Block&)> watch,
         std::function<void(const Text& what, double done)> at_work) {
  Page page(options);
  run(lab, page, std::move(watch), std::move(at_work));
  return page;
}

void run(const Lab& lab, Page& page, std::function<void(const Block&)> watch,
         std::function<void(const Text& what, double done)> at_work) {
  require(page.data().empty() || lab.takes_data, "lab {name} takes no data; got \"{data}\"", "name"_a = lab.name,
          "data"_a = page.data());
  struct End {  // also if a step throws: the page outlives its watchers
    Page& page;
    ~End() {
      page.forget();
      page.watch = {};
      page.at_work = {};
      page.end();
    }
  } end{page};
  if (!page.data().empty()) {
    const auto pairs = std::ssize(load_book_zh(page.data()).train);
    require(pairs >= kFewestPairs, "{file}: has {pairs} sentence pairs; the lab needs at least {least}",
            "file"_a = page.data(), "pairs"_a = pairs, "least"_a = kFewestPairs);
  }
  page.watch = std::move(watch);
  page.at_work = std::move(at_work);
  for (Sketch& sketch : sketches_of(lab.name)) page.sketch(std::move(sketch));
  for (const Step& step : lab.steps)
    if (!step.slow || !page.quick()) step.run(page);
  if (page.quick()) add_left_out(page, lab);
  if (!page.beside_the_book().empty()) {
    page.heading(tr("The book's figures beside ours"));
    page.word_table({verbatim(""), tr("book"), tr("here")}, page.beside_the_book());
  }
  if (const std::vector<Text> sentences = summary_of(lab.name); !sentences.empty()) {
    page.heading(tr("In short"));
    for (const Text& sentence : sentences) page.say(sentence);
  }
}

}  // namespace qkv::labs
