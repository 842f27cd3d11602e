// Places of variables in model.bin, and their values as float32.
#include "qkv/tasks/pretrained/ctranslate2.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/io/half.h"

namespace qkv {
namespace {

constexpr int64_t kFirstVersion = 4, kLastVersion = 6;  // of the file's layout
constexpr uint64_t kMostVariables = 100'000, kMostNameBytes = 1000, kMostRank = 4;
constexpr int64_t kUsualPositions = 512;  // of OPUS-MT models, where the file has no table
constexpr size_t kTypeBytes[] = {4, 1, 2, 4, 2, 2};
constexpr const char* kTypeNames[] = {"F32", "I8", "I16", "I32", "F16", "BF16"};
constexpr const char *kEmbedding = "decoder/embeddings/weight", *kOutputBias = "decoder/projection/bias",
                     *kTable = "decoder/position_encodings/encodings";

constexpr WeightRule kRules[] = {
    {"encoder.embedding.weight", kEmbedding},
    {"encoder.*.self.to_q.weight", "encoder/layer_*/self_attention/linear_0/weight", WeightChange::copy, 0, 3},
    {"encoder.*.self.to_k.weight", "encoder/layer_*/self_attention/linear_0/weight", WeightChange::copy, 1, 3},
    {"encoder.*.self.to_v.weight", "encoder/layer_*/self_attention/linear_0/weight", WeightChange::copy, 2, 3},
    {"encoder.*.self.to_q.bias", "encoder/layer_*/self_attention/linear_0/bias", WeightChange::copy, 0, 3},
    {"encoder.*.self.to_k.bias", "encoder/layer_*/self_attention/linear_0/bias", WeightChange::copy, 1, 3},
    {"encoder.*.self.to_v.bias", "encoder/layer_*/self_attention/linear_0/bias", WeightChange::copy, 2, 3},
    {"encoder.*.self.to_out.weight", "encoder/layer_*/self_attention/linear_1/weight"},
    {"encoder.*.self.to_out.bias", "encoder/layer_*/self_attention/linear_1/bias"},
    {"encoder.*.self_norm.gamma", "encoder/layer_*/self_attention/layer_norm/gamma"},
    {"encoder.*.self_norm.beta", "encoder/layer_*/self_attention/layer_norm/beta"},
    {"encoder.*.ffn.first.weight", "encoder/layer_*/ffn/linear_0/weight"},
    {"encoder.*.ffn.first.bias", "encoder/layer_*/ffn/linear_0/bias"},
    {"encoder.*.ffn.second.weight", "encoder/layer_*/ffn/linear_1/weight"},
    {"encoder.*.ffn.second.bias", "encoder/layer_*/ffn/linear_1/bias"},
    {"encoder.*.ffn_norm.gamma", "encoder/layer_*/ffn/layer_norm/gamma"},
    {"encoder.*.ffn_norm.beta", "encoder/layer_*/ffn/layer_norm/beta"},
    {"decoder.embedding.weight", kEmbedding},
    {"decoder.*.self.to_q.weight", "decoder/layer_*/self_attention/linear_0/weight", WeightChange::copy, 0, 3},
    {"decoder.*.self.to_k.weight", "decoder/layer_*/self_attention/linear_0/weight", WeightChange::copy, 1, 3},
    {"decoder.*.self.to_v.weight", "decoder/layer_*/self_attention/linear_0/weight", WeightChange::copy, 2, 3},
    {"decoder.*.self.to_q.bias", "decoder/layer_*/self_attention/linear_0/bias", WeightChange::copy, 0, 3},
    {"decoder.*.self.to_k.bias", "decoder/layer_*/self_attention/linear_0/bias", WeightChange::copy, 1, 3},
    {"decoder.*.self.to_v.bias", "decoder/layer_*/self_attention/linear_0/bias", WeightChange::copy, 2, 3},
    {"decoder.*.self.to_out.weight", "decoder/layer_*/self_attention/linear_1/weight"},
    {"decoder.*.self.to_out.bias", "decoder/layer_*/self_attention/linear_1/bias"},
    {"decoder.*.self_norm.gamma", "decoder/layer_*/self_attention/layer_norm/gamma"},
    {"decoder.*.self_norm.beta", "decoder/layer_*/self_attention/layer_norm/beta"},
    {"decoder.*.cross.to_q.weight", "decoder/layer_*/attention/linear_0/weight"},
    {"decoder.*.cross.to_q.bias", "decoder/layer_*/attention/linear_0/bias"},
    {"decoder.*.cross.to_k.weight", "decoder/layer_*/attention/linear_1/weight", WeightChange::copy, 0, 2},
    {"decoder.*.cross.to_v.weight", "decoder/layer_*/attention/linear_1/weight", WeightChange::copy, 1, 2},
    {"decoder.*.cross.to_k.bias", "decoder/layer_*/attention/linear_1/bias", WeightChange::copy, 0, 2},
    {"decoder.*.cross.to_v.bias", "decoder/layer_*/attention/linear_1/bias", WeightChange::copy, 1, 2},
    {"decoder.*.cross.to_out.weight", "decoder/layer_*/attention/linear_2/weight"},
    {"decoder.*.cross.to_out.bias", "decoder/layer_*/attention/linear_2/bias"},
    {"decoder.*.cross_norm.gamma", "decoder/layer_*/attention/layer_norm/gamma"},
    {"decoder.*.cross_norm.beta", "decoder/layer_*/attention/layer_norm/beta"},
    {"decoder.*.ffn.first.weight", "decoder/layer_*/ffn/linear_0/weight"},
    {"decoder.*.ffn.first.bias", "decoder/layer_*/ffn/linear_0/bias"},
    {"decoder.*.ffn.second.weight", "decoder/layer_*/ffn/linear_1/weight"},
    {"decoder.*.ffn.second.bias", "decoder/layer_*/ffn/linear_1/bias"},
    {"decoder.*.ffn_norm.gamma", "decoder/layer_*/ffn/layer_norm/gamma"},
    {"decoder.*.ffn_norm.beta", "decoder/layer_*/ffn/layer_norm/beta"},
    {"decoder.output.weight", kEmbedding},
    {"decoder.output.bias", kOutputBias},
};
constexpr std::string_view kIgnored[] = {kTable, "encoder/position_encodings/encodings"};  // checked, and computed

}  // namespace

WeightTable ctranslate2_table() { return {.architecture = "CTranslate2", .rules = kRules, .ignored = kIgnored}; }

/// Reads the file from its beginning; what it passes lies inside the file.
class Ctranslate2Weights::Reader {
 public:
  explicit Reader(const InputFile& file) : file_(file) {}
  uint64_t at() const { return at_; }
  bool ended() const { return at_ == file_.size(); }
  void skip(uint64_t bytes) {
    require(bytes <= file_.size() - at_, "{path}: ends after {size} bytes, in the middle of a variable",
            "path"_a = file_.path(), "size"_a = grouped(file_.size()));
    at_ += bytes;
  }
  template <class Number>
  Number number() {
    const uint64_t from = at_;
    skip(sizeof(Number));
    Number out{};
    file_.read(from, std::as_writable_bytes(std::span(&out, 1)));
    return out;
  }
  // Its bytes are counted with the NUL at its end.
  std::string name() {
    const uint64_t bytes = number<uint16_t>(), from = at_;
    require(bytes >= 1 && bytes <= kMostNameBytes, "{path}: a name has {bytes} bytes, expected 1 to {most}",
            "path"_a = file_.path(), "bytes"_a = bytes, "most"_a = kMostNameBytes);
    skip(bytes);
    std::string out(bytes, '\0');
    file_.read(from, std::as_writable_bytes(std::span(out)));
    out.pop_back();
    return out;
  }

 private:
  const InputFile& file_;
  uint64_t at_ = 0;
};

Ctranslate2Weights::Ctranslate2Weights(const std::string& folder) : folder_(folder), file_(folder + "/model.bin") {
  read_places();
  expect("decoder/start_from_zero_embedding", 1, 0);
  for (const char* name : {kEmbedding, kOutputBias}) {  // the row of <pad>
    const auto found = places_.find(name);
    require(found != places_.end() && found->second.shape.rank() >= 1,
            "{path}: has no \"{name}\", which a Marian model needs", "path"_a = file_.path(), "name"_a = name);
    found->second.shape.set(0, found->second.shape[0] + 1);
    found->second.zeros = true;
  }
}

void Ctranslate2Weights::read_places() {
  Reader in(file_);
  const int64_t version = in.number<uint32_t>();
  require(version >= kFirstVersion && version <= kLastVersion,
          "{path}: its version is {version}, expected {first} to {last}: is this a model.bin of CTranslate2?",
          "path"_a = file_.path(), "version"_a = version, "first"_a = kFirstVersion, "last"_a = kLastVersion);
  const std::string kind = in.name();
  require(kind == "TransformerSpec", "{path}: holds a {kind}, expected a TransformerSpec, a model that translates",
          "path"_a = file_.path(), "kind"_a = printable(kind));
  in.number<uint32_t>();  // the revision
  const uint64_t count = in.number<uint32_t>();
  require(count <= kMostVariables, "{path}: names {count} variables, expected at most {most}", "path"_a = file_.path(),
          "count"_a = count, "most"_a = kMostVariables);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = in.name();
    Place one;
    const uint64_t rank = in.number<uint8_t>();
    require(rank <= kMostRank, "{path}: \"{name}\" has {rank} axes, expected at most {most}", "path"_a = file_.path(),
            "name"_a = printable(name), "rank"_a = rank, "most"_a = kMostRank);
    std::vector<int64_t> sizes;
    uint64_t elements = 1;
    for (uint64_t axis = 0; axis < rank; ++axis) {
      sizes.push_back(in.number<uint32_t>());
      const auto size = static_cast<uint64_t>(sizes.back());
      require(size >= 1 && size <= file_.size() / elements,
              "{path}: \"{name}\" has a shape for which the file is too small", "path"_a = file_.path(),
              "name"_a = printable(name));
      elements *= size;
    }
    one.shape = Shape(sizes);
    const uint64_t type = in.number<uint8_t>();
    require(type < std::size(kTypeBytes), "{path}: \"{name}\" has values of type {type}, expected 0 to {most}",
            "path"_a = file_.path(), "name"_a = printable(name), "type"_a = type, "most"_a = std::size(kTypeBytes) - 1);
    one.type = static_cast<Type>(type);
    one.bytes = in.number<uint32_t>();
    require(elements * kTypeBytes[type] == one.bytes, "{path}: \"{name}\" has {bytes} bytes, but its shape is {shape}",
            "path"_a = file_.path(), "name"_a = printable(name), "bytes"_a = grouped(one.bytes), "shape"_a = one.shape);
    one.offset = in.at();
    in.skip(one.bytes);
    require(places_.emplace(name, one).second, "{path}: \"{name}\" appears twice", "path"_a = file_.path(),
            "name"_a = printable(name));
  }
  const uint64_t aliases = in.number<uint32_t>();
  require(aliases <= kMostVariables, "{path}: names {count} variables, expected at most {most}",
          "path"_a = file_.path(), "count"_a = aliases, "most"_a = kMostVariables);
  for (uint64_t i = 0; i < aliases; ++i) {
    const std::string name = in.name(), of = in.name();
    require(places_.contains(of) && !places_.contains(name),
            "{path}: \"{name}\" is another name of \"{of}\", which {path} lacks", "path"_a = file_.path(),
            "name"_a = printable(name), "of"_a = printable(of));
    aliases_[name] = of;
  }
  require(in.ended(), "{path}: has more bytes than its variables need", "path"_a = file_.path());
}

const Ctranslate2Weights::Place& Ctranslate2Weights::place(const std::string& name) const {
  const auto alias = aliases_.find(name);
  const auto found = places_.find(alias == aliases_.end() ? name : alias->second);
  require(found != places_.end(), "{path}: has no \"{name}\", which a Marian model needs", "path"_a = file_.path(),
          "name"_a = name);
  return found->second;
}

bool Ctranslate2Weights::has(const std::string& name) const {
  return places_.contains(name) || aliases_.contains(name);
}

// Without numbers and without the scales of rows, which belong to other variables.
std::vector<std::string> Ctranslate2Weights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : places_)
    if (!is_number(place) && !name.ends_with("_scale")) out.push_back(name);
  return out;
}

std::vector<std::string> Ctranslate2Weights::types() const {
  std::vector<std::string> out;
  for (const std::string& name : names())
    if (const char* type = kTypeNames[static_cast<size_t>(place(name).type)]; std::ranges::find(out, type) == out.end())
      out.emplace_back(type);
  std::ranges::sort(out);
  return out;
}

int64_t Ctranslate2Weights::number(const std::string& name, int64_t absent) const {
  if (!has(name)) return absent;
  const Place& one = place(name);
  const size_t bytes = kTypeBytes[static_cast<size_t>(one.type)];
  const bool whole = one.type == Type::int8 || one.type == Type::int16 || one.type == Type::int32;
  require(is_number(one) && whole, "{path}: \"{name}\" is not a whole number", "path"_a = file_.path(),
          "name"_a = name);
  int32_t out = 0;
  file_.read(one.offset, std::as_writable_bytes(std::span(&out, 1)).first(bytes));
  if (one.type == Type::int8) return static_cast<int8_t>(out);
  return one.type == Type::int16 ? static_cast<int16_t>(out) : out;
}

void Ctranslate2Weights::expect(const std::string& name, int64_t wanted, int64_t absent) const {
  const int64_t found = number(name, absent);
  require(found == wanted, "{path}: \"{name}\" is {found}, expected {wanted}: qkv reads Marian models of this format",
          "path"_a = file_.path(), "name"_a = name, "found"_a = found, "wanted"_a = wanted);
}

int64_t Ctranslate2Weights::layers(const std::string& side) const {
  int64_t count = 0;
  while (has(text(side, "/layer_", count, "/ffn/linear_0/weight"))) ++count;
  require(count >= 1 && count <= 64, "{path}: has {count} layers in its {side}, expected 1 to 64",
          "path"_a = file_.path(), "count"_a = count, "side"_a = side);
  return count;
}

TransformerConfig Ctranslate2Weights::config() const {
  for (const std::string side : {"encoder", "decoder"}) {
    expect(side + "/pre_norm", 0, 0);
    expect(side + "/alibi", 0, 0);
    expect(side + "/embeddings_merge", 0, 0);
  }
  for (const char* name : {"encoder/embeddings_0/weight", "decoder/projection/weight"})
    require(has(name) && place(name).offset == place(kEmbedding).offset,
            "{path}: \"{name}\" has values of its own, expected another name of \"{of}\"", "path"_a = file_.path(),
            "name"_a = name, "of"_a = kEmbedding);
  const auto same = [&](const std::string& name, int64_t absent) {
    const int64_t found = number("encoder/" + name, absent);
    expect("decoder/" + name, found, absent);
    return found;
  };
  TransformerConfig o;
  o.hidden = shape(kEmbedding)[1];
  o.layers = layers("encoder");
  o.decoder_layers = layers("decoder");
  o.heads = same("num_heads", 8);
  require(o.heads >= 1 && o.heads <= 1024 && o.hidden % o.heads == 0,
          "{path}: its width {width} is not a multiple of its {heads} heads", "path"_a = file_.path(),
          "width"_a = o.hidden, "heads"_a = o.heads);
  o.ffn = shape("encoder/layer_0/ffn/linear_0/weight")[0];
  constexpr Activation kActivations[] = {Activation::relu, Activation::gelu_tanh, Activation::silu, Activation::gelu};
  const int64_t activation = same("activation", 0);
  require(activation >= 0 && activation < std::ssize(kActivations),
          "{path}: \"{name}\" is {found}, expected 0 to {most}", "path"_a = file_.path(),
          "name"_a = "encoder/activation", "found"_a = activation, "most"_a = std::size(kActivations) - 1);
  o.activation = kActivations[activation];
  o.scale_embeddings = same("scale_embeddings", 1) != 0;
  o.positions = PositionKind::sinusoidal;
  o.waves = Waves::halves;
  o.max_positions = has(kTable) ? shape(kTable)[0] : kUsualPositions;
  o.norm = NormPlace::post;
  o.bias = o.tied = o.output_bias = true;
  check_positions(o);
  return o;
}

// The table of positions has the sines and cosines that we compute: a few rows are compared.
void Ctranslate2Weights::check_positions(const TransformerConfig& config) const {
  if (!has(kTable)) return;
  const Place& table = place(kTable);
  const int64_t rows = config.max_positions, half = config.hidden / 2;
  require(table.shape == Shape({rows, config.hidden}), "{path}: \"{name}\" has shape {shape}, expected {expected}",
          "path"_a = file_.path(), "name"_a = kTable, "shape"_a = table.shape,
          "expected"_a = Shape({rows, config.hidden}));
  const Tensor values = float_values(table);
  for (const int64_t row : {int64_t{0}, std::min<int64_t>(1, rows - 1), rows / 2, rows - 1})
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(row) *
                           std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(config.hidden));
      constexpr double kRounding = 1e-3;  // of angles up to 2,048 in float32
      const bool near = std::abs(values.at({row, i}) - std::sin(angle)) < kRounding &&
                        std::abs(values.at({row, half + i}) - std::cos(angle)) < kRounding;
      require(near, "{path}: \"{name}\" does not hold sines and cosines in halves, which Marian models have",
              "path"_a = file_.path(), "name"_a = kTable);
    }
}

Tensor Ctranslate2Weights::float_values(const Place& one) const {
  Tensor out = Tensor::empty(one.shape);
  const auto stored = static_cast<size_t>(one.bytes) / kTypeBytes[static_cast<size_t>(one.type)];
  float* const to = out.mutable_ptr();
  std::fill(to + stored, to + out.numel(), 0.0f);  // the row of zeros
  if (one.type == Type::float32) {
    file_.read(one.offset, std::as_writable_bytes(std::span(to, stored)));
  } else if (one.type == Type::int8) {
    std::vector<int8_t> values(stored);
    file_.read(one.offset, std::as_writable_bytes(std::span(values)));
    std::ranges::copy(values, to);
  } else {
    std::vector<uint16_t> values(stored);
    file_.read(one.offset, std::as_writable_bytes(std::span(values)));
    for (size_t i = 0; i < stored; ++i)
      to[i] = one.type == Type::float16 ? float_of_half(values[i]) : float_of_bfloat(values[i]);
  }
  return out;
}

Tensor Ctranslate2Weights::tensor(const std::string& name) const {
  Tensor& kept = read_[aliases_.contains(name) ? aliases_.at(name) : name];
  if (kept.defined()) return kept;
  const Place& one = place(name);
  require(one.type != Type::int16 && one.type != Type::int32,
          "{path}: \"{name}\" is {type}, expected F32, F16, BF16 or I8", "path"_a = file_.path(), "name"_a = name,
          "type"_a = kTypeNames[static_cast<size_t>(one.type)]);
  Tensor out = float_values(one);
  if (one.type == Type::int8) {  // value = int8 / scale of its row
    const std::string named = (aliases_.contains(name) ? aliases_.at(name) : name) + "_scale";
    const Place& scales = place(named);
    const int64_t rows = one.shape[0] - (one.zeros ? 1 : 0), width = one.shape.numel() / one.shape[0];
    require(scales.type == Type::float32 && scales.shape == Shape({rows}),
            "{path}: \"{name}\" has shape {shape}, expected {expected}", "path"_a = file_.path(), "name"_a = named,
            "shape"_a = scales.shape, "expected"_a = Shape({rows}));
    const Tensor scale = float_values(scales);
    for (int64_t r = 0; r < rows; ++r) {
      float* const row = out.mutable_ptr() + r * width;
      for (int64_t i = 0; i < width; ++i) row[i] /= scale.ptr()[r];
    }
  }
  check_finite(out, file_.path(), name);
  return kept = out;
}

}  // namespace qkv
