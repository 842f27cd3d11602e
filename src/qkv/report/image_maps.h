// What a vision Transformer attends to on an image, as figures over it, arrays and JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/io/array.h"
#include "qkv/plot/figure.h"
#include "qkv/report/attention_maps.h"
#include "qkv/report/classifications.h"
#include "qkv/tasks/vision/attention.h"

namespace QKV_API qkv {
namespace report {

struct SeenImage {
  Classification answer;
  ImageAttention attention;
  Tensor picture;  // (height, width, channels), 0 to 1
  Viewer viewer;   // whose attention is shown
};
SeenImage seen_image(const Classifier& classifier, const ImageSet& set, int64_t image, const std::string& file,
                     const Viewer& viewer);

/// Heads of layers over the picture, as chosen; with `values` also what their values add, and with `rollout` the mean
/// of the heads and the rollout of every layer.
std::vector<Figure> image_figures(const SeenImage& seen, const MapChoice& choice, FigureUse use);
/// "attention" (layers, heads, patch rows, patch columns), and "values" and "rollout" if chosen; arrays also have the
/// "picture" and the "weights" between all tokens.
std::string to_json(const SeenImage& seen, const MapChoice& choice);
std::map<std::string, Array> to_arrays(const SeenImage& seen, const MapChoice& choice);
/// A self-contained page with the figures.
std::string to_html(const SeenImage& seen, std::vector<Figure> figures, Language language);

}  // namespace report
}  // namespace qkv
