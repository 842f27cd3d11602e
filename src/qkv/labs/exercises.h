// The exercises of both editions: what is asked, the answer in one sentence, and the lab that works it out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::labs {

/// experiment: something is trained or measured; worked: a derivation whose result is checked with numbers; argument:
/// an answer in words, where no experiment of this size would decide it.
enum class ExerciseKind { experiment, worked, argument };

struct Exercise {
  std::vector<std::string> numbers;  // {"10.4.1", "11.4.1"}: in the Chinese edition, then in the English one
  std::string lab;                   // its name
  ExerciseKind kind;
  int64_t seconds;  // it takes about this long on two cores
  Text heading, question, answer;

  /// The heading without the words "Exercise 10.4.1".
  std::string title(Language language) const;
};

/// In the order of their numbers.
const std::vector<Exercise>& all_exercises();
/// By any of its numbers; null if there is none.
const Exercise* find_exercise(const std::string& number);
/// "experiment", "worked out", "argument".
Text kind_name(ExerciseKind kind);
/// The address of an exercise on a page: "exercise-10.4.1".
std::string anchor_of_exercise(const std::string& number);

// The parts of the list, by chapter.
std::vector<Exercise> exercises_of_basics();
std::vector<Exercise> exercises_of_sequences();
std::vector<Exercise> exercises_of_transformers();

}  // namespace qkv::labs
