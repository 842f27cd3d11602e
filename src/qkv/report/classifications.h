// Answers of a classifier: the likeliest classes of an image, and how good the answers to labelled images are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/plot/figure.h"
#include "qkv/tasks/vision/classifier.h"

namespace QKV_API qkv {
namespace report {

struct Answer {
  std::string class_name;
  int64_t class_number = 0;
  double probability = 0;
};

struct Classification {
  std::string file;  // of an image; else `text` is what was classified
  std::optional<std::string> text = {};
  std::optional<int64_t> image = {};      // its number in an IDX file, from 1
  std::vector<Answer> answers = {};       // likeliest first
  std::optional<std::string> label = {};  // the right class, if it is known
};

/// The `top` likeliest classes of every image.
std::vector<Classification> classifications(const Classifier& classifier, const ImageSet& set,
                                            const Tensor& probabilities, const std::string& file, int64_t top);

/// "FILE: sneaker 0.93, sandal 0.05, ...", without a line end.
std::string to_text(const Classification& one);
/// {"file": ..., "image": 3, "class": "sneaker", "probability": 0.93, "top": [{"class": ..., "probability": ...}],
/// "label": ...}
std::string to_json(const Classification& one);

/// How often label i was answered by class j.
struct Confusion {
  std::vector<std::string> classes;
  std::vector<std::vector<int64_t>> counts;  // label, answer
  double loss = 0;                           // mean of -log probability of the label, in nats
  int64_t images() const;
  int64_t right() const;
  double accuracy() const;
};
/// For labelled images; labels are classes of the model.
Confusion confusion_of(const Classifier& classifier, const ImageSet& set, const Tensor& probabilities);
/// Accuracy, then a table: a row for each label with its accuracy and counts.
std::string to_text(const Confusion& confusion, Language language);
std::string to_json(const Confusion& confusion);
Figure figure_of(const Confusion& confusion);

}  // namespace report
}  // namespace qkv
