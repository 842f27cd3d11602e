// Grids of maps over a picture: rows are layers, columns are heads.
#include "qkv/report/image_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/plot/svg.h"
#include "qkv/plot/text.h"
#include "qkv/report/nested_json.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPanelInches = 1.75;

Tensor picture_of(const ImageSet& set, int64_t image, const ImageSize& size) {
  const std::vector<uint8_t> bytes = converted(set.image(image), set.size, size);
  Tensor out = Tensor::empty({size.height, size.width, size.channels});
  const int64_t plane = size.height * size.width;
  for (int64_t i = 0; i < plane; ++i)
    for (int64_t c = 0; c < size.channels; ++c)
      out.mutable_ptr()[i * size.channels + c] = static_cast<float>(bytes[static_cast<size_t>(c * plane + i)]) / 255.0f;
  return out;
}

// The requested layer and head of (layers, heads, rows, columns).
Tensor chosen(const Tensor& maps, std::optional<int64_t> layer, std::optional<int64_t> head) {
  const int64_t layers = maps.size(0), heads = maps.size(1), cells = maps.size(2) * maps.size(3);
  require(!layer || *layer <= layers, "--layer {layer}: the last layer of the {name} attention is {layers}",
          "layer"_a = layer.value_or(0), "name"_a = "encoder", "layers"_a = layers);
  require(!head || *head <= heads, "--head {head}: the last head of the {name} attention is {heads}",
          "head"_a = head.value_or(0), "name"_a = "encoder", "heads"_a = heads);
  const int64_t rows = layer ? 1 : layers, cols = head ? 1 : heads;
  Tensor out = Tensor::empty({rows, cols, maps.size(2), maps.size(3)});
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(maps.ptr() + (((layer ? *layer - 1 : 0) + r) * heads + (head ? *head - 1 : 0)) * cells, cols * cells,
                out.mutable_ptr() + r * cols * cells);
  return out;
}

struct Readings {
  Tensor weights, values, mean, rolled;  // values, and mean and rolled, only if chosen
};

Readings readings_of(const SeenImage& seen, const MapChoice& choice) {
  const auto view = [&](const Tensor& maps) { return seen_patches(seen.attention, maps, seen.viewer); };
  Readings out;
  out.weights = chosen(view(seen.attention.weights), choice.layer, choice.head);
  if (choice.values) out.values = chosen(view(seen.attention.value_weighted), choice.layer, choice.head);
  if (choice.rollout) {
    out.mean = chosen(view(mean_of_heads(seen.attention.weights)), choice.layer, {});
    out.rolled = chosen(view(rollout(seen.attention.weights)), choice.layer, {});
  }
  return out;
}

Text viewer_text(const SeenImage& seen) {
  if (seen.viewer.patch)
    return tr("what the patch in row {row}, column {column} attends to",
              "row"_a = *seen.viewer.patch / seen.attention.patch_columns + 1,
              "column"_a = *seen.viewer.patch % seen.attention.patch_columns + 1);
  return seen.attention.class_token ? tr("what the class token attends to")
                                    : tr("what the patches attend to, on average");
}

class ImageDrawer {
 public:
  ImageDrawer(const SeenImage& seen, const MapChoice& choice, FigureUse use)
      : seen_(seen), choice_(choice), use_(use), readings_(readings_of(seen, choice)) {}

  std::vector<Figure> figures() const {
    std::vector<Figure> out;
    out.push_back(heads(readings_.weights, "fig-heads", viewer_text(seen_)));
    if (choice_.values) out.push_back(heads(readings_.values, "fig-values", tr("the same, value-weighted")));
    if (choice_.rollout) out.push_back(layers());
    return out;
  }

 private:
  // (rows, cols, n, m): panels over the picture.
  Figure grid(const Tensor& maps, const char* id, const Text& title) const {
    ColourScale colours = choice_.colours;
    if (!colours.low) colours.low = 0;
    if (!colours.map) colours.map = ColourMap::viridis;  // its bright end shows on dark images
    Figure out = heatmaps(maps, "", "", {}, {.colours = colours});
    if (use_ == FigureUse::paper)
      out.size = FigureSize{kPanelInches * static_cast<double>(maps.size(1)) + 0.9,
                            kPanelInches * static_cast<double>(maps.size(0)) + 0.7};
    for (Panel& panel : out.panels) {
      auto& map = std::get<HeatMap>(panel.content);
      map.picture = seen_.picture;
      map.x_span = CellSpan{1, static_cast<double>(maps.size(3))};  // patches are counted from 1
      map.y_span = CellSpan{1, static_cast<double>(maps.size(2))};
      if (seen_.viewer.patch)
        map.boxes = {
            {*seen_.viewer.patch / seen_.attention.patch_columns, *seen_.viewer.patch % seen_.attention.patch_columns}};
    }
    out.id = id;
    out.title = title;
    return out;
  }

  Figure heads(const Tensor& maps, const char* id, const Text& title) const {
    Figure out = grid(maps, id, title);
    const int64_t rows = maps.size(0), cols = maps.size(1), cells = maps.size(2) * maps.size(3);
    // One head may look at a few patches and another at all of them a little: on one scale the second would be blank.
    const bool own = rows * cols > 1 && !choice_.colours.low && !choice_.colours.high;
    if (own) {
      out.colours.per_panel = true;
      out.colours.bar = false;
      out.title = tr("{what}; colours from 0 to the largest weight of each panel", "what"_a = title);
    }
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t layer = choice_.layer.value_or(1) + i / cols, head = choice_.head.value_or(1) + i % cols;
      Panel& panel = out.panels[static_cast<size_t>(i)];
      panel.short_title = text("L", layer, " H", head);
      Text name;
      if (use_ == FigureUse::terminal)
        name = tr("Layer {layer}, head {head}", "layer"_a = layer, "head"_a = head);
      else if (i < cols)
        name = tr("Head {head}", "head"_a = head);
      if (own) {
        const std::string most =
            fmt::format("{:.2g}", *std::max_element(maps.ptr() + i * cells, maps.ptr() + (i + 1) * cells));
        name = name.empty() ? tr("up to {most}", "most"_a = most)
                            : tr("{name}, up to {most}", "name"_a = name, "most"_a = most);
      }
      panel.title = name;
      if (use_ == FigureUse::paper && i % cols == 0) panel.y.label = tr("Layer {layer}", "layer"_a = layer);
    }
    return out;
  }

  // For every layer, the mean of its heads; below it, the rollout up to that layer.
  Figure layers() const {
    const Tensor &mean = readings_.mean, &rolled = readings_.rolled;
    const int64_t count = mean.size(0), first = choice_.layer.value_or(1);
    Tensor both = Tensor::empty({2, count, mean.size(2), mean.size(3)});
    std::copy_n(mean.ptr(), mean.numel(), both.mutable_ptr());
    std::copy_n(rolled.ptr(), rolled.numel(), both.mutable_ptr() + mean.numel());
    Figure out = grid(both, "fig-rollout", tr("mean of the heads, and rollout"));
    if (!choice_.colours.low) out.colours.per_panel = true;  // a rollout is much flatter
    if (use_ == FigureUse::paper)                            // with room for the bars
      out.size = FigureSize{(kPanelInches + 1.0) * static_cast<double>(count) + 0.5, 2 * (kPanelInches + 0.5)};
    for (int64_t l = 0; l < count; ++l) {
      Panel &above = out.panels[static_cast<size_t>(l)], &below = out.panels[static_cast<size_t>(count + l)];
      const int64_t layer = first + l;
      above.title = tr("Layer {layer}, mean of heads", "layer"_a = layer);
      above.short_title = tr("L{layer} mean", "layer"_a = layer);
      below.title = layer == 1 ? tr("Layer {layer}, all heads, rollout", "layer"_a = layer)
                               : tr("Layers 1 to {layer}, all heads, rollout", "layer"_a = layer);
      below.short_title = text("L", layer, " rollout");
    }
    return out;
  }

  const SeenImage& seen_;
  const MapChoice& choice_;
  FigureUse use_;
  Readings readings_;
};

}  // namespace

SeenImage seen_image(const Classifier& classifier, const ImageSet& set, int64_t image, const std::string& file,
                     const Viewer& viewer) {
  const ImageSet one = set.part(std::span(&image, 1));
  SeenImage out;
  out.answer = classifications(classifier, one, classifier.probabilities(one), file, 5)[0];
  out.attention = image_attention(classifier.model(), classifier.input(one, 0));
  out.picture = picture_of(one, 0, classifier.facts().size);
  out.viewer = viewer;
  const int64_t patches = out.attention.patch_rows * out.attention.patch_columns;
  check(!viewer.patch || *viewer.patch < patches, "[seen_image] patch ", viewer.patch.value_or(0), " of ", patches);
  return out;
}

std::vector<Figure> image_figures(const SeenImage& seen, const MapChoice& choice, FigureUse use) {
  return ImageDrawer(seen, choice, use).figures();
}

std::string to_json(const SeenImage& seen, const MapChoice& choice) {
  Json out = Json::parse(to_json(seen.answer));
  const Readings readings = readings_of(seen, choice);
  out["viewer"] = seen.viewer.patch            ? Json(*seen.viewer.patch)
                  : seen.attention.class_token ? Json("class token")
                                               : Json("mean of patches");
  out["attention"] = nested_json<Json>(readings.weights);
  if (choice.values) out["values"] = nested_json<Json>(readings.values);
  if (choice.rollout) out["rollout"] = nested_json<Json>(readings.rolled);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::map<std::string, Array> to_arrays(const SeenImage& seen, const MapChoice& choice) {
  const Readings readings = readings_of(seen, choice);
  std::map<std::string, Array> out = {{"attention", Array(readings.weights)},
                                      {"weights", Array(seen.attention.weights)},
                                      {"picture", Array(seen.picture)}};
  if (choice.values) out.emplace("values", Array(readings.values));
  if (choice.rollout) out.emplace("rollout", Array(readings.rolled));
  return out;
}

std::string to_html(const SeenImage& seen, std::vector<Figure> figures, Language language) {
  SeenSentence words;
  words.source = seen.answer.file;
  words.target = to_text(seen.answer);
  return to_html(words, std::move(figures), language);
}

}  // namespace qkv::report
