// Runs a model on a sentence with a probe that keeps what every attention attended to.
#include "qkv/serve/map_session.h"

#include <algorithm>
#include <cmath>

#include "qkv/data/text.h"
#include "qkv/report/translations.h"
#include "qkv/serve/edits.h"
#include "qkv/tasks/attention_maps.h"
#include "qkv/tensor/probe.h"

namespace qkv::serve {
namespace {

constexpr int64_t kInside = 64;            // rows and columns of a map that travels inside an answer
constexpr int64_t kMeasured = 16'000'000;  // weights of all maps together whose entropy is measured
constexpr int64_t kDenseTokens = 512;      // for readings that need whole matrices
constexpr int64_t kEditedTokens = 1024;    // an edited attention is computed as a whole matrix

class Recorder : public Probe {
 public:
  void attention(std::string_view path, const Weights& weights) override { seen_.emplace_back(path, weights); }
  void values(std::string_view path, const Tensor& v) override { widths_[std::string(path)] = v.size(-1); }
  // "encoder.0.self" -> encoder; "decoder.0.cross" -> cross.
  std::vector<MapPart> parts() const {
    std::vector<MapPart> out;
    for (const auto& [path, weights] : seen_) {
      const std::string name = path.ends_with(".cross") ? "cross" : path.substr(0, path.find('.'));
      auto found = std::ranges::find(out, name, &MapPart::name);
      if (found == out.end()) found = out.insert(out.end(), MapPart{name, {}, {}, 0});
      found->layers.push_back(weights);
      found->kept_bytes += kept_bytes(path, weights);
    }
    return out;
  }

 private:
  // Queries and keys are as wide as the values; an edited attention keeps its matrix.
  int64_t kept_bytes(const std::string& path, const Weights& weights) const {
    const Shape& s = weights.shape();
    const auto width = widths_.find(path);
    const bool matrix = weights.path() == AttendPath::composed || width == widths_.end();
    return static_cast<int64_t>(sizeof(float)) * (matrix ? s.numel() : (s[2] + s[3]) * width->second);
  }

  std::vector<std::pair<std::string, Weights>> seen_;
  std::map<std::string, int64_t> widths_;
};

Ids row_of(const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); }

enum class Reading { weights, values, rollout };
constexpr std::array<std::string_view, 3> names(Reading) { return {"weights", "values", "rollout"}; }

std::vector<MapPart> dense_parts(const TransformerAttention& attention, Reading reading) {
  const AttentionMaps maps = reading == Reading::values    ? attention.value_weighted
                             : reading == Reading::rollout ? rollout(attention.weights)
                                                           : attention.weights;
  std::vector<MapPart> out;
  for (const auto& [name, map] : {std::pair{"encoder", maps.encoder}, {"decoder", maps.decoder}, {"cross", maps.cross}})
    if (map.defined() && map.numel() > 0) out.push_back({name, {}, map});
  return out;
}

void check_dense(size_t tokens) {
  require(std::cmp_less_equal(tokens, kDenseTokens), "this reading is for texts of at most {most} tokens, got {tokens}",
          "most"_a = kDenseTokens, "tokens"_a = tokens);
}

void check_edited(const AttentionEdits& edits, size_t tokens) {
  require(edits.empty() || std::cmp_less_equal(tokens, kEditedTokens),
          "edits are for texts of at most {most} tokens, got {tokens}", "most"_a = kEditedTokens, "tokens"_a = tokens);
}

struct PairIds {
  std::vector<int32_t> source, target;
  std::string text;
  Tensor attention;
};

PairIds pair_ids(const Translator& translator, const Fields& in, const AttentionEdits& edits, const Call& call) {
  const std::string text = in.text("text");
  check_utf8(text, tr("the sentence"));
  const size_t tokens = translator.tokenizers().source.encode(text).size();
  require(tokens > 0, "the sentence is empty");
  check_edited(edits, tokens);
  if (in.has("target")) {
    const std::string target = in.text("target");
    const auto forced = translator.force(
        {{text}, {target}},
        {.edits = edits, .source_name = tr("the sentence"), .target_name = tr("the translation"), .first_line = 0})[0];
    require(!forced.target.empty(), "the translation is empty");
    return {forced.source, forced.target, target, forced.forced.attention};
  }
  TranslateOptions options = translator.defaults();
  options.keep_attention = true;
  options.edits = edits;
  options.name = tr("the sentence");
  options.first_line = 0;
  options.watch.stop = call.stop;
  const std::vector<std::string> one = {text};
  const Translation translation = translator.translate(one, options)[0];
  call.go_on();
  const Hypothesis& best = translation.hypotheses.at(0);
  std::vector<int32_t> ids = best.tokens;
  if (best.ended) ids.push_back(translator.tokenizers().target.eos());
  return {translation.source, ids, translator.text(best, translation.writing), best.attention};
}

MapSession look_at_translation(const Translator& translator, const Fields& in, Reading reading, const Call& call) {
  const AttentionEdits edits = read_edits(in, translator.model().facts());
  const PairIds pair = pair_ids(translator, in, edits, call);
  const Tokenizer &source = translator.tokenizers().source, &target = translator.tokenizers().target;
  MapSession out{.text = in.text("text"),
                 .target = pair.text,
                 .source_tokens = source.tokens(pair.source),
                 .input_tokens = {},
                 .output_tokens = target.tokens(pair.target),
                 .parts = {}};
  std::vector<int32_t> read = {target.bos()};
  if (!pair.target.empty()) read.insert(read.end(), pair.target.begin(), pair.target.end() - 1);
  out.input_tokens = target.tokens(read);
  const Transformer* model = translator.model().transformer();
  if (!model) {
    require(pair.attention.defined(), "this model has no attention (model.attention is none)");
    require(reading == Reading::weights, "reading: this model has a single attention map, whose reading is weights");
    const Shape& s = pair.attention.shape();
    out.parts.push_back({"cross", {}, report::by_layers(translator, pair.attention).viewed({1, s[1], s[0], s[2]})});
    return out;
  }
  if (reading != Reading::weights) {
    check_dense(std::max(pair.source.size(), read.size()));
    out.parts = dense_parts(transformer_attention(*model, row_of(pair.source), {}, row_of(read), edits), reading);
    return out;
  }
  Recorder recorder;
  EditProbe probe(edits, &recorder);
  const TapePause pause;
  model->features(row_of(pair.source), {}, row_of(read), Run{.probe = &probe});
  out.parts = recorder.parts();
  return out;
}

MapSession look_at_language(const LanguageGenerator& generator, const Fields& in, Reading reading) {
  const std::string text = in.text("text");
  check_utf8(text, tr("the text"));
  const LanguageBatch batch = generator.batch_of(text);
  const AttentionEdits edits = read_edits(in, generator.config().facts());
  check_edited(edits, batch.read.data().size());
  MapSession out{.text = text,
                 .target = {},
                 .source_tokens = generator.tokens(batch.read.data()),
                 .input_tokens = {},
                 .output_tokens = {},
                 .parts = {}};
  const bool spans = generator.objective() == LanguageObjective::spans;
  out.input_tokens = out.output_tokens = spans ? generator.tokens(batch.written.data()) : out.source_tokens;
  if (reading != Reading::weights) {
    check_dense(out.source_tokens.size());
    require(edits.empty(), "edits: the readings values and rollout of a language model take none");
    out.parts = dense_parts(language_attention(generator.model(), batch), reading);
    return out;
  }
  Recorder recorder;
  EditProbe probe(edits, &recorder);
  const TapePause pause;
  const Run run{.probe = &probe};
  if (spans)
    generator.model().features(batch.read, batch.written, run);
  else
    generator.model().features(batch.read, run);
  out.parts = recorder.parts();
  return out;
}

}  // namespace

void MapPart::row(int64_t layer, int64_t head, int64_t query, float* weights) const {
  if (!dense.defined()) return layers[static_cast<size_t>(layer)].row(0, head, query, weights);
  std::copy_n(dense.ptr() + ((layer * heads() + head) * queries() + query) * keys(), keys(), weights);
}

const MapPart& MapSession::part(const std::string& name) const {
  std::vector<std::string> known;
  for (const MapPart& p : parts) {
    if (p.name == name) return p;
    known.push_back(p.name);
  }
  refuse_word("name", name, known);
}

Tensor MapSession::map(const std::string& name, int64_t layer, int64_t head) const {
  const MapPart& p = part(name);
  require(layer >= 1 && layer <= p.layer_count(), "layer: expected 1 to {most}, got {layer}",
          "most"_a = p.layer_count(), "layer"_a = layer);
  require(head >= 1 && head <= p.heads(), "head: expected 1 to {most}, got {head}", "most"_a = p.heads(),
          "head"_a = head);
  if (!p.dense.defined()) return p.layers[static_cast<size_t>(layer - 1)].head(0, head - 1);
  Tensor out = Tensor::empty({p.queries(), p.keys()});
  std::copy_n(p.dense.ptr() + ((layer - 1) * p.heads() + head - 1) * out.numel(), out.numel(), out.mutable_ptr());
  return out;
}

int64_t MapPart::bytes() const {
  return kept_bytes + (dense.defined() ? dense.numel() * static_cast<int64_t>(sizeof(float)) : 0);
}

int64_t MapSession::bytes() const {
  size_t sum = text.size() + target.size();
  for (const auto* tokens : {&source_tokens, &input_tokens, &output_tokens})
    for (const std::string& token : *tokens) sum += sizeof token + token.capacity();
  auto all = static_cast<int64_t>(sum);
  for (const MapPart& part : parts) all += part.bytes();
  return all;
}

MapSession look_at_text(const Call& call, const Fields& in) {
  const std::string id = in.text("model");
  const Reading reading = in.choice("reading", Reading::weights);
  const ShelfModel model = call.api.shelf().model(id);
  if (model.run && model.run->config.task() == TaskKind::language)
    return look_at_language(*call.api.shelf().generator(id), in, reading);
  return look_at_translation(*call.api.shelf().translator(id), in, reading, call);
}

Json maps_json(const MapSession& session, const Call& call) {
  Json out = Json::array();
  int64_t weights = 0;
  for (const MapPart& p : session.parts) weights += p.layer_count() * p.heads() * p.queries() * p.keys();
  for (const MapPart& p : session.parts)
    for (int64_t layer = 0; layer < p.layer_count(); ++layer)
      for (int64_t head = 0; head < p.heads(); ++head) {
        call.go_on();
        Json one = {{"name", p.name}, {"layer", layer + 1}, {"head", head + 1}, {"shape", {p.queries(), p.keys()}}};
        if (weights <= kMeasured) {
          const Tensor map = session.map(p.name, layer + 1, head + 1);
          double entropy = 0, confidence = 0;
          for (int64_t i = 0; i < p.queries(); ++i) {
            float most = 0;
            for (int64_t j = 0; j < p.keys(); ++j) {
              const float w = map.ptr()[i * p.keys() + j];
              if (w > 0) entropy -= static_cast<double>(w) * std::log(static_cast<double>(w));
              most = std::max(most, w);
            }
            confidence += static_cast<double>(most);
          }
          const auto rows = static_cast<double>(std::max<int64_t>(p.queries(), 1));
          one["entropy"] = entropy / rows;
          one["confidence"] = confidence / rows;
          if (p.queries() <= kInside && p.keys() <= kInside) one["values"] = nested(map);
        }
        out.push_back(std::move(one));
      }
  return out;
}

}  // namespace qkv::serve
