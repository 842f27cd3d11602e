// qkv check for images: answers depend on their own image, on all of it, and on nothing else.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/cli/check_task.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/pictures.h"
#include "qkv/data/shuffle.h"
#include "qkv/tasks/vision/leaks.h"

namespace qkv::cli {
namespace {

constexpr int64_t kMostImages = 512;

// Images of a file; otherwise drawn pictures at the model's size.
ImageSet images_of(const CheckRequest& request, const Classifier& classifier, uint64_t seed) {
  if (request.data.empty())
    return drawn_pictures({.count = std::min(request.count, kMostImages),
                           .side = std::max<int64_t>(8, classifier.facts().size.height),
                           .seed = seed});
  const ImageSet all = read_image_file(request.data);
  classifier.check_size(all, request.data, OtherSizes::refused);
  std::vector<int64_t> rows = shuffled(all.count(), Rng(seed).at("check"));
  rows.resize(static_cast<size_t>(std::min({request.count, kMostImages, all.count()})));
  return all.part(rows);
}

std::string number(double x) { return x == 0 ? "0" : fmt::format("{:.2g}", x); }

}  // namespace

int check_vision(const CheckRequest& request, const Global& global) {
  const Classifier classifier(request.model);
  note_unfinished(request.model, global);
  const ImageSet set = images_of(request, classifier, global.seed);
  const ImageLeakReport report = image_leaks(classifier, set, Rng(global.seed).at("check"));
  if (request.json) {
    const auto finite = [](double x) { return std::isnan(x) ? nlohmann::ordered_json() : nlohmann::ordered_json(x); };
    const nlohmann::ordered_json out = {{"model", request.model},
                                        {"images", set.count()},
                                        {"passed", report.passed()},
                                        {"patches", report.patches},
                                        {"noticed", report.noticed},
                                        {"checks",
                                         {{"batch_mates",
                                           {{"tried", report.mates_tried},
                                            {"scores", report.mates_compared},
                                            {"largest", finite(report.mates_largest)},
                                            {"passed", report.mates_passed()}}},
                                          {"all_tokens",
                                           {{"scores", report.whole_compared},
                                            {"largest", finite(report.whole_largest)},
                                            {"passed", report.whole_passed()}}}}}};
    fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return report.passed() ? 0 : 1;
  }
  const auto say = [&](const Text& t) { return t.in(global.language); };
  const auto row = [&](int64_t tried, int64_t scores, double largest, const Text& what, bool passed) {
    fmt::print("{:>9} {:>14} {:>12}  {}: {}\n", tried, scores, number(largest), say(what),
               say(passed ? tr("ok") : tr("FAILED")));
  };
  fmt::print("{}\n", say(request.data.empty() ? tr("{model}: drawn pictures: {images}", "model"_a = request.model,
                                                   "images"_a = set.count())
                                              : tr("{model}: images of {data}: {images}", "model"_a = request.model,
                                                   "data"_a = request.data, "images"_a = set.count())));
  fmt::print("{:>9} {:>14} {:>12}\n", say(tr("tried")), say(tr("scores")), say(tr("largest")));
  row(report.mates_tried, report.mates_compared, report.mates_largest,
      tr("change the other images of the batch, and their order"), report.mates_passed());
  row(report.mates_tried, report.whole_compared, report.whole_largest,
      tr("compute every token of the last layer, not only those that answers need"), report.whole_passed());
  fmt::print("{}\n", say(tr("control: {noticed} of {patches} patches had an effect when they were changed",
                            "noticed"_a = report.noticed, "patches"_a = report.patches)));
  if (report.noticed < report.patches)
    fmt::print("{}\n", say(tr("FAILED: answers do not depend on every patch of the image")));
  return report.passed() ? 0 : 1;
}

}  // namespace qkv::cli
