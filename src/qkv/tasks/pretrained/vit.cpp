// ViT: patches by a convolution, a class token, learned positions, pre-norm blocks.
#include "qkv/tasks/pretrained/vit.h"

#include <algorithm>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/tasks/pretrained/activations.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/pretrained/weight_table.h"

namespace qkv {
namespace {

constexpr WeightRule kRules[] = {
    {"embed.weight", "vit.embeddings.patch_embeddings.projection.weight", WeightChange::reshape},
    {"embed.bias", "vit.embeddings.patch_embeddings.projection.bias"},
    {"cls", "vit.embeddings.cls_token"},
    {"positions", "vit.embeddings.position_embeddings", WeightChange::reshape},
    {"encoder.*.self.to_q.weight", "vit.encoder.layer.*.attention.attention.query.weight"},
    {"encoder.*.self.to_q.bias", "vit.encoder.layer.*.attention.attention.query.bias"},
    {"encoder.*.self.to_k.weight", "vit.encoder.layer.*.attention.attention.key.weight"},
    {"encoder.*.self.to_k.bias", "vit.encoder.layer.*.attention.attention.key.bias"},
    {"encoder.*.self.to_v.weight", "vit.encoder.layer.*.attention.attention.value.weight"},
    {"encoder.*.self.to_v.bias", "vit.encoder.layer.*.attention.attention.value.bias"},
    {"encoder.*.self.to_out.weight", "vit.encoder.layer.*.attention.output.dense.weight"},
    {"encoder.*.self.to_out.bias", "vit.encoder.layer.*.attention.output.dense.bias"},
    {"encoder.*.self_norm.gamma", "vit.encoder.layer.*.layernorm_before.weight"},
    {"encoder.*.self_norm.beta", "vit.encoder.layer.*.layernorm_before.bias"},
    {"encoder.*.ffn.first.weight", "vit.encoder.layer.*.intermediate.dense.weight"},
    {"encoder.*.ffn.first.bias", "vit.encoder.layer.*.intermediate.dense.bias"},
    {"encoder.*.ffn.second.weight", "vit.encoder.layer.*.output.dense.weight"},
    {"encoder.*.ffn.second.bias", "vit.encoder.layer.*.output.dense.bias"},
    {"encoder.*.ffn_norm.gamma", "vit.encoder.layer.*.layernorm_after.weight"},
    {"encoder.*.ffn_norm.beta", "vit.encoder.layer.*.layernorm_after.bias"},
    {"encoder.norm.gamma", "vit.layernorm.weight"},
    {"encoder.norm.beta", "vit.layernorm.bias"},
    {"output.weight", "classifier.weight"},
    {"output.bias", "classifier.bias"},
};
constexpr std::string_view kIgnored[] = {"vit.pooler.dense.weight", "vit.pooler.dense.bias"};

// One number, or a list of two equal ones or, with `other`, of two that may differ.
std::pair<int64_t, int64_t> sides_of(const ModelJson& json, const char* key, int64_t absent) {
  const std::vector<int64_t> given = json.wholes(key, 1, limits::kPictureSide);
  if (given.empty()) return {absent, absent};
  require(given.size() <= 2, "{path}: \"{key}\" has {count} numbers, expected a height and a width",
          "path"_a = json.path(), "key"_a = key, "count"_a = given.size());
  return {given.front(), given.back()};
}

VisionTransformerConfig model_of(const ModelJson& json, ImageSize& size) {
  VisionTransformerConfig o;
  o.hidden = json.whole("hidden_size", 1, 65536);
  o.layers = json.whole("num_hidden_layers", 1, 64);
  o.heads = json.whole("num_attention_heads", 1, 1024);
  o.ffn = json.whole("intermediate_size", 1, 1'000'000);
  require(o.hidden % o.heads == 0, "{path}: \"{key}\" {width} is not a multiple of its {heads} heads",
          "path"_a = json.path(), "key"_a = "hidden_size", "width"_a = o.hidden, "heads"_a = o.heads);
  const auto [patch, patch_width] = sides_of(json, "patch_size", 16);
  require(patch == patch_width, "{path}: its patches have {height} x {width} pixels, expected as many rows as columns",
          "path"_a = json.path(), "height"_a = patch, "width"_a = patch_width);
  o.patch = patch;
  std::tie(size.height, size.width) = sides_of(json, "image_size", 224);
  size.channels = json.whole("num_channels", 1, 3, 3);
  require(size.channels != 2, "{path}: \"{key}\" is {value}, expected 1 or 3", "path"_a = json.path(),
          "key"_a = "num_channels", "value"_a = size.channels);
  require(size.height % patch == 0 && size.width % patch == 0,
          "{path}: images of {height} x {width} pixels cannot be cut into patches of {patch}", "path"_a = json.path(),
          "height"_a = size.height, "width"_a = size.width, "patch"_a = patch);
  o.activation = read_activation(json, "hidden_act", "gelu");
  o.norm_eps = static_cast<float>(json.number("layer_norm_eps", 1e-12, 1, 1e-12));
  o.dropout = static_cast<float>(json.number("attention_probs_dropout_prob", 0, 0.99, 0.0));
  o.embedding_dropout = static_cast<float>(json.number("hidden_dropout_prob", 0, 0.99, 0.0));
  json.expect("qkv_bias", true, true);
  o.bias = true;
  return o;
}

// How images become numbers; without preprocessor_config.json as the models of the paper have it.
void read_preprocessor(const std::string& folder, PretrainedVision& out) {
  out.scaling = ImageScaling::same(0.5, 0.5);
  const std::string path = folder + "/preprocessor_config.json";
  if (!std::filesystem::exists(path)) return;
  const ModelJson json(path);
  out.stretches = json.flag("do_resize", true);
  json.expect("do_center_crop", false, false);
  if (json.is_object("size")) {
    const auto size = json.object("size");
    require(!size->has("shortest_edge"), "{path}: \"size\" has \"shortest_edge\", expected \"height\" and \"width\"",
            "path"_a = path);
    const int64_t height = size->whole("height", 1, limits::kPictureSide),
                  width = size->whole("width", 1, limits::kPictureSide);
    require(!out.stretches || (height == out.facts.size.height && width == out.facts.size.width),
            "{path}: images become {height} x {width} pixels, but config.json says {wanted_height} x {wanted_width}",
            "path"_a = path, "height"_a = height, "width"_a = width, "wanted_height"_a = out.facts.size.height,
            "wanted_width"_a = out.facts.size.width);
  }
  const int64_t filter = json.whole("resample", 0, 5, 2);  // Pillow's numbers
  require(!out.stretches || filter == 2 || filter == 3,
          "{path}: \"resample\" is {value}, expected 2 (bilinear) or 3 (bicubic)", "path"_a = path, "value"_a = filter);
  if (filter == 3) out.scaling.filter = ImageFilter::bicubic;
  // What multiplies a byte is part of mean and deviation.
  const double factor = json.flag("do_rescale", true) ? json.number("rescale_factor", 1e-9, 1e9, 1 / 255.0) * 255 : 255;
  const bool normalized = json.flag("do_normalize", true);
  const std::vector<double> mean = json.numbers("image_mean", -1e6, 1e6),
                            deviation = json.numbers("image_std", 1e-6, 1e6);
  for (const auto* list : {&mean, &deviation})
    require(!normalized || list->empty() || std::ssize(*list) == out.facts.size.channels,
            "{path}: image_mean and image_std have {found} numbers, expected {channels}", "path"_a = path,
            "found"_a = list->size(), "channels"_a = out.facts.size.channels);
  for (size_t c = 0; c < 3; ++c) {
    const auto at = [&](const std::vector<double>& list, double plain) {
      return !normalized ? plain : list.empty() ? 0.5 : list[std::min(c, list.size() - 1)];
    };
    out.scaling.mean[c] = at(mean, 0) / factor;
    out.scaling.deviation[c] = at(deviation, 1) / factor;
  }
}

std::vector<std::string> classes_of(const ModelJson& json) {
  std::vector<std::string> out = json.numbered_words("id2label");
  require(out.size() >= 2 && std::ssize(out) <= limits::kClasses,
          "{path}: \"id2label\" has {count} classes, expected 2 to {most}", "path"_a = json.path(),
          "count"_a = out.size(), "most"_a = limits::kClasses);
  return out;
}

}  // namespace

WeightTable vit_table() { return {.architecture = "ViT", .rules = kRules, .ignored = kIgnored}; }

namespace {

// Everything but the weights.
PretrainedVision read_settings(const std::string& folder) {
  check_task(folder, task_of(architecture_of(folder)), TaskKind::vision);
  const ModelJson json(folder + "/config.json");
  PretrainedVision out;
  out.config = model_of(json, out.facts.size);
  const std::vector<std::string> names = json.words("architectures");
  require(names.empty() || names[0].ends_with("ForImageClassification"),
          "{path}: \"architectures\" is {found}, expected ViTForImageClassification: this model has no classes",
          "path"_a = json.path(), "found"_a = names.empty() ? "" : names[0]);
  out.facts.classes = classes_of(json);
  read_preprocessor(folder, out);
  return out;
}

// One number if all are equal.
std::vector<double> per_channel(const std::array<double, 3>& x, int64_t channels) {
  if (channels == 1 || (x[0] == x[1] && x[1] == x[2])) return {x[0]};
  return {x.begin(), x.end()};
}

}  // namespace

VisionConfig read_pretrained_vision_config(const std::string& folder) {
  const PretrainedVision found = read_settings(folder);
  const ImageSize& size = found.facts.size;
  VisionConfig out;
  out.model = found.config;
  out.data.channels = size.channels;
  out.data.mean = per_channel(found.scaling.mean, size.channels);
  out.data.deviation = per_channel(found.scaling.deviation, size.channels);
  out.data.filter = found.scaling.filter;
  if (size.height == size.width) out.data.image_size = size.height;
  set_fine_tuning(out.training);
  return out;
}

ImageFacts read_pretrained_image_facts(const std::string& folder) { return read_settings(folder).facts; }

PretrainedVision open_pretrained_vision(const std::string& folder) {
  PretrainedVision out = read_settings(folder);
  const PretrainedWeights weights(folder);
  out.model = std::make_unique<VisionTransformer>(with_pretrained_weights(
      [&] { return VisionTransformer(out.config, out.facts.size, std::ssize(out.facts.classes), Rng(0)); }, weights,
      vit_table()));
  return out;
}

}  // namespace qkv
