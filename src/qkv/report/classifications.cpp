// Answers as text, JSON and a figure.
#include "qkv/report/classifications.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/data/text.h"
#include "qkv/plot/text.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

std::string printed(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::span<const float> row_of(const Tensor& probabilities, int64_t i) {
  const auto width = static_cast<size_t>(probabilities.size(1));
  return std::span(probabilities.ptr(), static_cast<size_t>(probabilities.numel()))
      .subspan(static_cast<size_t>(i) * width, width);
}

}  // namespace

std::vector<Classification> classifications(const Classifier& classifier, const ImageSet& set,
                                            const Tensor& probabilities, const std::string& file, int64_t top) {
  const std::vector<std::string>& classes = classifier.facts().classes;
  std::vector<Classification> out;
  for (int64_t i = 0; i < set.count(); ++i) {
    const std::span<const float> row = row_of(probabilities, i);
    Classification one{.file = file};
    if (set.count() > 1) one.image = i + 1;
    for (const int64_t c : best_classes(row, top))
      one.answers.push_back({classes[static_cast<size_t>(c)], c, double{row[static_cast<size_t>(c)]}});
    if (!set.labels.empty()) one.label = classes[static_cast<size_t>(set.labels[static_cast<size_t>(i)])];
    out.push_back(std::move(one));
  }
  return out;
}

std::string to_text(const Classification& one) {
  std::string out = printable(one.text.value_or(one.file));
  if (one.image) out += text(":", *one.image);
  out += ": ";
  for (size_t i = 0; i < one.answers.size(); ++i)
    out +=
        fmt::format("{}{} {:.3f}", i > 0 ? ", " : "", printable(one.answers[i].class_name), one.answers[i].probability);
  return out;
}

std::string to_json(const Classification& one) {
  Json out;
  if (one.text)
    out["text"] = *one.text;
  else
    out["file"] = one.file;
  if (one.image) out["image"] = *one.image;
  out["class"] = one.answers.front().class_name;
  out["probability"] = one.answers.front().probability;
  Json top = Json::array();
  for (const Answer& a : one.answers) top.push_back({{"class", a.class_name}, {"probability", a.probability}});
  out["top"] = top;
  if (one.label) out["label"] = *one.label;
  return printed(out);
}

int64_t Confusion::images() const {
  int64_t sum = 0;
  for (const auto& row : counts)
    for (const int64_t n : row) sum += n;
  return sum;
}

int64_t Confusion::right() const {
  int64_t sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) sum += counts[i][i];
  return sum;
}

double Confusion::accuracy() const {
  return static_cast<double>(right()) / static_cast<double>(std::max<int64_t>(images(), 1));
}

Confusion confusion_of(const Classifier& classifier, const ImageSet& set, const Tensor& probabilities) {
  const std::vector<std::string>& classes = classifier.facts().classes;
  Confusion out{classes, std::vector(classes.size(), std::vector<int64_t>(classes.size())), 0};
  double loss = 0;
  for (int64_t i = 0; i < set.count(); ++i) {
    const std::span<const float> row = row_of(probabilities, i);
    const auto label = static_cast<size_t>(set.labels[static_cast<size_t>(i)]);
    ++out.counts[label][static_cast<size_t>(best_classes(row, 1)[0])];
    loss -= std::log(std::max(double{row[label]}, 1e-300));
  }
  out.loss = loss / static_cast<double>(std::max<int64_t>(set.count(), 1));
  return out;
}

std::string to_text(const Confusion& c, Language language) {
  std::string out = tr("accuracy {accuracy:.4f} ({right} of {images}), loss {loss:.4f}\n", "accuracy"_a = c.accuracy(),
                       "right"_a = c.right(), "images"_a = c.images(), "loss"_a = c.loss)
                        .in(language);
  int width = 0;
  for (const std::string& name : c.classes) width = std::max(width, plotting::display_width(printable(name)));
  if (c.classes.size() > 20) return out;
  out += tr("rows are labels, columns are answers\n").in(language);
  for (size_t i = 0; i < c.classes.size(); ++i) {
    int64_t all = 0;
    for (const int64_t n : c.counts[i]) all += n;
    if (all == 0) continue;
    const std::string name = printable(c.classes[i]);
    out += name + std::string(static_cast<size_t>(width - plotting::display_width(name)), ' ');
    out += fmt::format("  {:5.3f}", static_cast<double>(c.counts[i][i]) / static_cast<double>(all));
    for (const int64_t n : c.counts[i]) out += n == 0 ? "      ." : fmt::format(" {:6}", n);
    out += '\n';
  }
  return out;
}

std::string to_json(const Confusion& c) {
  return printed({{"accuracy", c.accuracy()},
                  {"right", c.right()},
                  {"images", c.images()},
                  {"loss", c.loss},
                  {"classes", c.classes},
                  {"confusion", c.counts}});
}

Figure figure_of(const Confusion& c) {
  const auto n = std::ssize(c.classes);
  Tensor shares = Tensor::empty({n, n});
  for (int64_t i = 0; i < n; ++i) {
    double all = 0;
    for (int64_t j = 0; j < n; ++j)
      all += static_cast<double>(c.counts[static_cast<size_t>(i)][static_cast<size_t>(j)]);
    for (int64_t j = 0; j < n; ++j)
      shares.mutable_ptr()[i * n + j] = static_cast<float>(
          static_cast<double>(c.counts[static_cast<size_t>(i)][static_cast<size_t>(j)]) / std::max(all, 1.0));
  }
  HeatMapOptions options{.x_tokens = c.classes, .y_tokens = c.classes, .cell_values = true};
  options.colours.low = 0;
  options.colours.high = 1;
  return heatmaps(shares, tr("answer"), tr("label"), {}, options);
}

}  // namespace qkv::report
