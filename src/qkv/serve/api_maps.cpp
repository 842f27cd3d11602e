// POST /maps, /map, /heads, /blocks, /compare: what the parts of a model attend to.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/serve/base64.h"
#include "qkv/serve/edits.h"
#include "qkv/serve/map_session.h"

namespace qkv::serve {
namespace {

constexpr int64_t kMostCells = 256 * 256;           // of an answer
constexpr int64_t kMostWeights = 64 * 1024 * 1024;  // computed for an answer

constexpr int64_t kMostHeads = 256;  // that are compared
constexpr int64_t kMostTokens = 512;
constexpr int64_t kRowsAtOnce = 64;  // of cells, before a newer request is looked for

struct Range {
  int64_t begin, end;
};

Range read_range(const Fields& in, const char* key, int64_t size) {
  if (!in.has(key)) return {0, size};
  const auto both = in.numbers(key, 2);
  require(both.size() == 2 && both[0] == std::floor(both[0]) && both[1] == std::floor(both[1]) && both[0] >= 0 &&
              both[0] < both[1] && both[1] <= static_cast<double>(size),
          "{field}: expected [a, b] with 0 <= a < b <= {size}, got {value}", "field"_a = key, "size"_a = size,
          "value"_a = in.at(key).dump());
  return {static_cast<int64_t>(both[0]), static_cast<int64_t>(both[1])};
}

// The bytes of float32 numbers, little-endian, in base64: a third as long as numbers, and quick to make.
std::string base64_of(const Tensor& x) {
  static_assert(std::endian::native == std::endian::little);
  const auto bytes = std::as_bytes(x.data());
  return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// How far two maps are apart: half the sum of differences of a row, as a mean over rows; 0 to 1.
double distance(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numel(); ++i) sum += std::abs(static_cast<double>(a.ptr()[i]) - b.ptr()[i]);
  return sum / 2 / static_cast<double>(std::max<int64_t>(a.size(0), 1));
}

Json norms(const Tensor& x) {
  Json out = Json::array();
  const int64_t width = x.size(2);
  for (int64_t i = 0; i < x.size(1); ++i) {
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += std::pow(static_cast<double>(x.ptr()[i * width + c]), 2);
    out.push_back(std::sqrt(sum));
  }
  return out;
}

Json block_json(const std::string& path, const std::string& name, const Tensor& in, const Tensor& out) {
  return {{"path", path},    {"name", name},       {"shape", {out.size(1), out.size(2)}},
          {"in", norms(in)}, {"norm", norms(out)}, {"change", norms(sub(out, in))}};
}

Json tokens_of(const MapSession& seen) {
  return {{"source_tokens", seen.source_tokens},
          {"input_tokens", seen.input_tokens},
          {"output_tokens", seen.output_tokens},
          {"text", seen.text},
          {"target", seen.target}};
}

}  // namespace

Json maps(const Call& call) {
  const Fields in = call.fields();
  auto seen = std::make_shared<MapSession>(look_at_text(call, in));
  Json out = tokens_of(*seen);
  out["reading"] = in.text("reading", "weights");
  out["maps"] = maps_json(*seen, call);
  std::vector<std::string> words = {"inspect", "--model", call.api.shelf().model(in.text("model")).folder, "--json"};
  if (in.has("target")) words.insert(words.end(), {"--target", in.text("target")});
  if (out["reading"] != "weights") words.push_back(out["reading"] == "values" ? "--values" : "--rollout");
  words.push_back(in.text("text"));
  out["command"] = edited(in) ? ask_line(call, "maps") : command_line(words);
  out["session"] = call.api.keep(std::move(seen));
  return out;
}

Json map_part(const Call& call) {
  const Fields in = call.fields();
  const auto session = call.api.session(in.text("session"));
  const MapPart& part = session->part(in.text("name"));
  const int64_t layer = in.whole("layer", 1, part.layer_count(), 1), head = in.whole("head", 1, part.heads(), 1);
  const Range rows = read_range(in, "row", part.queries()), columns = read_range(in, "column", part.keys());
  const int64_t high = rows.end - rows.begin, wide = columns.end - columns.begin;
  int64_t cell_rows = std::min<int64_t>(high, 256), cell_columns = std::min<int64_t>(wide, 256);
  if (in.has("cells")) {
    const Range cells = [&] {
      const auto both = in.numbers("cells", 2);
      require(both.size() == 2 && both[0] >= 1 && both[1] >= 1 && both[0] * both[1] <= kMostCells,
              "cells: expected [rows, columns], 1 or more and at most {most} in all, got {value}",
              "most"_a = kMostCells, "value"_a = in.at("cells").dump());
      return Range{static_cast<int64_t>(both[0]), static_cast<int64_t>(both[1])};
    }();
    cell_rows = std::min(high, cells.begin);
    cell_columns = std::min(wide, cells.end);
  }
  require(high * part.keys() <= kMostWeights, "row: {rows} rows of {keys} weights are too many for one request",
          "rows"_a = high, "keys"_a = part.keys());
  Tensor out = zeros({cell_rows, cell_columns});
  float* const cells = out.mutable_ptr();
  // Each row of cells has rows of its own, so they may be computed at once.
  const auto pool_rows = [&](int64_t begin, int64_t end) {
    std::vector<float> weights(static_cast<size_t>(part.keys()));
    for (int64_t i = (begin * high + cell_rows - 1) / cell_rows; i < high && i * cell_rows / high < end; ++i) {
      part.row(layer - 1, head - 1, rows.begin + i, weights.data());
      float* to = cells + i * cell_rows / high * cell_columns;
      for (int64_t j = 0; j < wide; ++j) {
        float& cell = to[j * cell_columns / wide];
        cell = std::max(cell, weights[static_cast<size_t>(columns.begin + j)]);
      }
    }
  };
  for (int64_t first = 0; first < cell_rows; first += kRowsAtOnce) {
    call.go_on();
    const int64_t count = std::min(kRowsAtOnce, cell_rows - first);
    const double cost =
        20.0 * static_cast<double>(count * part.keys()) * static_cast<double>(high) / static_cast<double>(cell_rows);
    parallel_ranges(count, 1, cost, [&](int64_t a, int64_t b) { pool_rows(first + a, first + b); });
  }
  const std::string form = in.text("form", "numbers");
  if (form != "numbers" && form != "base64") refuse_word("form", form, {"numbers", "base64"});
  return {{"values", form == "base64" ? Json(base64_of(out)) : nested(out)},
          {"cells", {cell_rows, cell_columns}},
          {"row", {rows.begin, rows.end}},
          {"column", {columns.begin, columns.end}},
          {"pooled", cell_rows < high || cell_columns < wide ? "max" : "none"}};
}

Json heads(const Call& call) {
  const Fields in = call.fields();
  const auto translator = call.api.shelf().translator(in.text("model"));
  const MapSession seen = look_at_text(call, in);
  const std::string name = in.text("name", seen.parts.front().name);
  const MapPart& part = seen.part(name);
  const ModelFacts facts = translator->model().facts();
  const auto heads_of = [&](int64_t layer) {  // pruned layers have fewer than others
    const auto group = std::ranges::find(facts.maps, name, &MapGroup::name);
    return group == facts.maps.end() ? part.heads() : group->heads_of(layer - 1);
  };
  std::vector<Tensor> all;
  const bool few =
      part.layer_count() * part.heads() <= kMostHeads && part.queries() <= kMostTokens && part.keys() <= kMostTokens;
  for (int64_t layer = 1; few && layer <= part.layer_count(); ++layer)
    for (int64_t head = 1; head <= heads_of(layer); ++head) all.push_back(seen.map(name, layer, head));
  Json apart = Json::array();
  for (const Tensor& a : all) {
    call.go_on();
    Json row = Json::array();
    for (const Tensor& b : all) row.push_back(distance(a, b));
    apart.push_back(std::move(row));
  }
  // Edits hold throughout; heads are switched off in addition.
  const AttentionEdits edits = read_edits(in, translator->model().facts());
  const auto scored = [&](const AttentionEdits& off) {
    AttentionEdits both = edits;
    both.insert(both.end(), off.begin(), off.end());
    return translator->force({{seen.text}, {seen.target}}, {.keep_attention = false, .edits = both, .first_line = 0})[0]
        .forced.log_probability();
  };
  const double log_probability = scored({});
  Json out = {{"text", seen.target}, {"log_probability", log_probability}};
  out["baseline"] = {{"text", seen.target}, {"log_probability", log_probability}};
  // Without some heads: what the model writes then, and how likely the old text is to it.
  if (const AttentionEdits off = read_off(in, translator->model().facts()); !off.empty()) {
    TranslateOptions options = translator->defaults();
    options.edits = edits;
    options.edits.insert(options.edits.end(), off.begin(), off.end());
    options.first_line = 0;
    options.watch.stop = call.stop;
    const Translation written = translator->translate(std::vector{seen.text}, options)[0];
    call.go_on();
    out["text"] = written.hypotheses.empty() ? "" : translator->text(written.hypotheses[0], written.writing);
    out["log_probability"] = scored(off);
  }
  out["name"] = name;
  out["difference"] = apart;
  if (!few)
    out["left_out"] = call.say(tr("heads are compared and measured on at most {heads} maps of {tokens} tokens",
                                  "heads"_a = kMostHeads, "tokens"_a = kMostTokens));
  // Importance of a head: how much less likely the text is without it.
  if (in.has("measure")) {
    out["importance"] = Json::array();
    for (int64_t layer = 1; few && layer <= part.layer_count(); ++layer)
      for (int64_t head = 1; head <= heads_of(layer); ++head) {
        call.go_on();
        const Json one = {{"off", Json::array({Json{{"name", name}, {"layer", layer}, {"head", head}}})}};
        const AttentionEdits off = read_off(Fields(one), translator->model().facts());
        out["importance"].push_back(
            {{"name", name}, {"layer", layer}, {"head", head}, {"value", log_probability - scored(off)}});
      }
  }
  return out;
}

Json blocks(const Call& call) {
  const Fields in = call.fields();
  const auto translator = call.api.shelf().translator(in.text("model"));
  const AttentionEdits edits = read_edits(in, translator->model().facts());
  const Transformer* model = translator->model().transformer();
  require(model != nullptr, "this model is not a Transformer");
  const MapSession seen = look_at_text(call, in);
  const Tokenizer &source = translator->tokenizers().source, &target = translator->tokenizers().target;
  const auto forced =
      translator->force({{seen.text}, {seen.target}}, {.keep_attention = false, .edits = edits, .first_line = 0})[0];
  std::vector<int32_t> read = {target.bos()};
  read.insert(read.end(), forced.target.begin(), forced.target.end() - 1);
  const TapePause pause;
  const auto row = [](const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); };
  Json list = Json::array();
  EditProbe probe(edits);
  const auto run_of = [&](const char* part, size_t layer) {
    return Run{.probe = &probe, .path = part + std::to_string(layer)};
  };
  // The model's own blocks, one by one: the same calls as TransformerStack makes.
  Tensor x = model->encoder.embedding(row(forced.source), 0, Run{});
  list.push_back(
      {{"path", "encoder.embedding"}, {"name", "embedding"}, {"shape", {x.size(1), x.size(2)}}, {"norm", norms(x)}});
  const auto& encoder = model->encoder.stack;
  for (size_t i = 0; i < encoder.blocks.size(); ++i) {
    const Tensor y = encoder.blocks[i](x, Mask::none(), run_of("encoder.", i));
    list.push_back(block_json("encoder." + std::to_string(i), "encoder block", x, y));
    x = y;
  }
  const Tensor memory = encoder.norm ? (*encoder.norm)(x) : x;
  x = model->decoder.embedding(row(read), 0, Run{});
  list.push_back(
      {{"path", "decoder.embedding"}, {"name", "embedding"}, {"shape", {x.size(1), x.size(2)}}, {"norm", norms(x)}});
  const auto& decoder = model->decoder.stack;
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const TransformerBlock& block = decoder.blocks[i];
    const Tensor y =
        block(x, Mask::causal(), block.cross->project(memory, memory), Mask::none(), run_of("decoder.", i));
    list.push_back(block_json("decoder." + std::to_string(i), "decoder block", x, y));
    x = y;
  }
  const Tensor features = decoder.norm ? (*decoder.norm)(x) : x;
  list.push_back({{"path", "decoder.output"},
                  {"name", "output"},
                  {"shape", {features.size(1), static_cast<int64_t>(target.size())}},
                  {"norm", norms(features)}});
  Json out = tokens_of(seen);
  out["source_tokens"] = source.tokens(forced.source);
  out["blocks"] = list;
  out["translation"] = {{"text", seen.target},
                        {"log_probability", forced.forced.log_probability()},
                        {"log_probabilities", forced.forced.log_probabilities}};
  out["maps"] = maps_json(seen, call);
  return out;
}

Json compare(const Call& call) {
  const Fields in = call.fields();
  const std::string name = in.text("name");
  struct Side {
    MapSession seen;
    Tensor map;
    std::string command;
  };
  const auto side = [&](const char* key) {
    const Fields of = in.object(key);
    const std::string kind = of.text("name", name);
    const int64_t layer = of.whole("layer", 1, 1000, in.whole("layer", 1, 1000, 1)),
                  head = of.whole("head", 1, 1000, in.whole("head", 1, 1000, 1));
    Side out{look_at_text(call, of), {}, {}};
    out.map = out.seen.map(kind, layer, head);
    // Models with a single map have nothing to pick.
    std::vector<std::string> words = {"inspect", "--model", call.api.shelf().model(of.text("model")).folder};
    if (out.seen.part(kind).layer_count() * out.seen.part(kind).heads() > 1)
      words.insert(words.end(), {"--kind", kind, "--layer", std::to_string(layer), "--head", std::to_string(head)});
    if (of.has("target")) words.insert(words.end(), {"--target", of.text("target")});
    words.insert(words.end(), {of.text("text"), "-o", std::string(key) + ".svg"});
    out.command = command_line(words);
    return out;
  };
  const Side left = side("left"), right = side("right");
  const Tensor &a = left.map, &b = right.map;
  require(a.numel() <= kMostCells && b.numel() <= kMostCells, "the maps have more than {most} cells",
          "most"_a = kMostCells);
  const auto as_json = [](const Side& of) {
    Json out = tokens_of(of.seen);
    out["values"] = nested(of.map);
    out["command"] = of.command;
    return out;
  };
  Json out = {{"left", as_json(left)}, {"right", as_json(right)}, {"difference", nullptr}, {"largest", nullptr}};
  if (a.shape() == b.shape()) {
    const Tensor difference = sub(a, b);
    float largest = 0;
    for (const float d : difference.data()) largest = std::max(largest, std::abs(d));
    out["difference"] = nested(difference);
    out["largest"] = largest;
  }
  return out;
}

}  // namespace qkv::serve
