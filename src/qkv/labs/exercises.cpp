// The list of exercises and how to find one.
#include "qkv/labs/exercises.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace qkv::labs {
namespace {

// "10.7.4" as {10, 7, 4}, so that 9.7.1 comes before 10.1.1.
std::array<int, 3> parts(const std::string& number) {
  std::array<int, 3> out{};
  std::istringstream in(number);
  char dot = 0;
  in >> out[0] >> dot >> out[1] >> dot >> out[2];
  return out;
}

}  // namespace

const std::vector<Exercise>& all_exercises() {
  static const std::vector<Exercise> all = [] {
    std::vector<Exercise> out;
    for (auto* part : {exercises_of_basics, exercises_of_sequences, exercises_of_transformers})
      for (Exercise& exercise : part()) out.push_back(std::move(exercise));
    std::sort(out.begin(), out.end(),
              [](const Exercise& a, const Exercise& b) { return parts(a.numbers[0]) < parts(b.numbers[0]); });
    return out;
  }();
  return all;
}

const Exercise* find_exercise(const std::string& number) {
  for (const Exercise& exercise : all_exercises())
    if (std::find(exercise.numbers.begin(), exercise.numbers.end(), number) != exercise.numbers.end()) return &exercise;
  return nullptr;
}

std::string Exercise::title(Language language) const {
  const std::string all = heading.in(language);
  for (const std::string_view colon : {std::string_view(": "), std::string_view("\xef\xbc\x9a")}) {  // full width
    const size_t at = all.find(colon), number = all.find(numbers[0]);
    if (at != all.npos && number < at) return all.substr(at + colon.size());
  }
  return all.substr(0, all.find(language == Language::en ? " (" : "\xef\xbc\x88"));  // full width
}

Text kind_name(ExerciseKind kind) {
  switch (kind) {
    case ExerciseKind::experiment:
      return tr("experiment");
    case ExerciseKind::worked:
      return tr("worked out");
    case ExerciseKind::argument:
      return tr("argument");
  }
  return {};
}

std::string anchor_of_exercise(const std::string& number) { return "exercise-" + number; }

}  // namespace qkv::labs
