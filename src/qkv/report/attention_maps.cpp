// Grids of maps: rows are layers, columns are heads.
#include "qkv/report/attention_maps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/core/names.h"
#include "qkv/ops/shape.h"
#include "qkv/plot/layout.h"
#include "qkv/plot/svg.h"
#include "qkv/plot/text.h"
#include "qkv/report/nested_json.h"

namespace qkv::report {
namespace {

// In pixels: what fits on a screen, and the tallest figures of the width of a page and of a screen, for scrolling.
constexpr double kScreen = 1700, kTallestPage = 2400, kTallestScreen = 6000;

struct Kind {
  std::string name;
  Text title, axis, rows;  // names of the queries: on an axis, and after a layer
  Tensor AttentionMaps::*maps;
};

const std::array<Kind, 3>& kinds() {
  static const std::array<Kind, 3> all{
      {{"encoder", tr("Encoder self-attention"), tr("Query positions"), tr("queries"), &AttentionMaps::encoder},
       {"decoder", tr("Decoder self-attention"), tr("Words read"), tr("words read"), &AttentionMaps::decoder},
       {"cross", tr("Encoder-decoder attention"), tr("Words written"), tr("words written"), &AttentionMaps::cross}}};
  return all;
}

// The chosen kinds, as far as the model has them.
std::vector<Kind> chosen_kinds(const SeenPair& seen, const MapChoice& choice) {
  std::vector<Kind> out;
  std::vector<std::string> known;
  for (const Kind& kind : kinds()) {
    if (!(seen.attention.weights.*kind.maps).defined()) continue;
    known.push_back(kind.name);
    if (choice.kind == "all" || choice.kind == kind.name) out.push_back(kind);
  }
  require(!out.empty(), "--kind {kind}: this model has only {known} attention", "kind"_a = choice.kind,
          "known"_a = listed(known));
  return out;
}

// The requested layer and head of (layers, heads, n, m), which may be all that there is.
Tensor chosen(const Tensor& maps, const std::string& name, std::optional<int64_t> layer, std::optional<int64_t> head,
              const MapsWanted& there = {}) {
  if (there.layer) layer = {};
  if (there.head) head = {};
  const int64_t layers = maps.size(0), heads = maps.size(1), n = maps.size(2), m = maps.size(3);
  require(!layer || *layer <= layers, "--layer {layer}: the last layer of the {name} attention is {layers}",
          "layer"_a = layer.value_or(0), "name"_a = name, "layers"_a = layers);
  require(!head || *head <= heads, "--head {head}: the last head of the {name} attention is {heads}",
          "head"_a = head.value_or(0), "name"_a = name, "heads"_a = heads);
  if (!layer && !head) return maps;
  const int64_t first_layer = layer ? *layer - 1 : 0, first_head = head ? *head - 1 : 0;
  const int64_t rows = layer ? 1 : layers, cols = head ? 1 : heads;
  Tensor out = Tensor::empty({rows, cols, n, m});
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(maps.ptr() + ((first_layer + r) * heads + first_head) * n * m, cols * n * m,
                out.mutable_ptr() + r * cols * n * m);
  return out;
}

struct Axes {
  std::vector<std::string> keys, queries;
};

Axes axes_of(const SeenPair& seen, const Kind& kind) {
  const auto source = axis_words(seen.source_tokens);
  if (kind.name == "encoder") return {source, source};
  if (kind.name == "decoder") return {axis_words(seen.input_tokens), axis_words(seen.input_tokens)};
  return {source, axis_words(seen.output_tokens)};
}

// (rows, cols, n, m) with words on the axes: as wide as a page, with folded rows; if that is too tall, as wide as a
// screen; if that is still too tall, with positions instead of words.
Figure grid(const Kind& kind, const Tensor& maps, const Axes& axes, const std::vector<CellIndex>& boxes,
            const ColourScale& colours) {
  const auto drawn = [&](const HeatMapOptions& options) {
    Figure out = heatmaps(maps, tr("Words looked at"), kind.axis, {}, options);
    for (Panel& panel : out.panels) std::get<HeatMap>(panel.content).boxes = boxes;
    return out;
  };
  Figure out = drawn({.colours = colours, .x_tokens = axes.keys, .y_tokens = axes.queries});
  if (maps.size(0) * maps.size(1) == 1 || plotting::layout(out).height <= kTallestPage) return out;
  out.widest = kScreen;
  if (plotting::layout(out).height <= kTallestScreen) return out;
  out = drawn({.colours = colours});
  out.widest = kScreen;
  return out;
}

class Drawer {
 public:
  Drawer(const SeenPair& seen, const MapChoice& choice, const std::vector<CellIndex>& boxes, FigureUse use)
      : seen_(seen), choice_(choice), boxes_(boxes), use_(use) {
    if (choice.rollout) {
      mean_ = mean_of_heads(seen.attention.weights);
      rolled_ = rollout(seen.attention.weights);
    }
  }

  std::vector<Figure> figures() const {
    std::vector<Figure> out;
    for (const Kind& kind : chosen_kinds(seen_, choice_)) {
      const Tensor raw = select(kind, seen_.attention.weights);
      if (raw.size(0) * raw.size(1) == 1) {
        out.push_back(one_head(kind, raw));
        continue;
      }
      out.push_back(heads(kind, raw, "", false));
      if (choice_.values) out.push_back(heads(kind, select(kind, seen_.attention.value_weighted), "-values", true));
      if (choice_.rollout) out.push_back(layers(kind));
    }
    return out;
  }

 private:
  Tensor select(const Kind& kind, const AttentionMaps& maps) const {
    return chosen(maps.*kind.maps, kind.name, choice_.layer, choice_.head, seen_.wanted);
  }
  Tensor select_layer(const Kind& kind, const AttentionMaps& maps) const {
    return chosen(maps.*kind.maps, kind.name, choice_.layer, {});
  }
  std::vector<CellIndex> boxes(const Kind& kind) const {
    return kind.name == "cross" ? boxes_ : std::vector<CellIndex>{};
  }
  int64_t first_layer() const { return choice_.layer.value_or(1); }
  int64_t first_head() const { return choice_.head.value_or(1); }

  ColourScale weight_colours() const { return report::weight_colours(choice_.colours); }
  ColourScale rollout_colours() const {
    ColourScale out = choice_.colours;
    if (!out.low) {
      out.low = 0;
      out.per_panel = true;
    }
    return out;
  }

  Figure named(Figure figure, const Kind& kind, const std::string& suffix, const Text& title) const {
    figure.id = "fig-" + kind.name + suffix;
    figure.title = title;
    return figure;
  }

  // Rows are layers, columns heads.
  Figure heads(const Kind& kind, const Tensor& maps, const std::string& suffix, bool by_value) const {
    Figure out = grid(kind, maps, axes_of(seen_, kind), boxes(kind), weight_colours());
    const int64_t rows = maps.size(0), cols = maps.size(1);
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t layer = first_layer() + i / cols, head = first_head() + i % cols;
      Panel& panel = out.panels[static_cast<size_t>(i)];
      if (use_ == FigureUse::terminal) {
        panel.title = tr("Layer {layer}, head {head}", "layer"_a = layer, "head"_a = head);
        panel.short_title = text("L", layer, " H", head);
        continue;
      }
      if (i < cols) panel.title = tr("Head {head}", "head"_a = head);
      if (i % cols == 0 && rows > 1)
        panel.y.label = tr("Layer {layer}, {queries}", "layer"_a = layer, "queries"_a = kind.rows);
    }
    const Text title = by_value ? tr("{attention}, value-weighted", "attention"_a = kind.title) : kind.title;
    return named(
        std::move(out), kind, suffix,
        rows == 1 ? tr("{attention}, layer {layer}", "attention"_a = title, "layer"_a = first_layer()) : title);
  }

  // For every layer, the mean of its heads; below it, the rollout up to that layer.
  Figure layers(const Kind& kind) const {
    const Tensor mean = select_layer(kind, mean_), rolled = select_layer(kind, rolled_);
    const int64_t count = mean.size(0), n = mean.size(2), m = mean.size(3);
    Tensor both = Tensor::empty({2, count, n, m});
    std::copy_n(mean.ptr(), mean.numel(), both.mutable_ptr());
    std::copy_n(rolled.ptr(), rolled.numel(), both.mutable_ptr() + mean.numel());
    Figure out = grid(kind, both, axes_of(seen_, kind), boxes(kind), rollout_colours());
    for (int64_t l = 0; l < count; ++l) {
      const int64_t layer = first_layer() + l;
      Panel &above = out.panels[static_cast<size_t>(l)], &below = out.panels[static_cast<size_t>(count + l)];
      above.title = tr("Layer {layer}, mean of heads", "layer"_a = layer);
      above.short_title = tr("L{layer} mean", "layer"_a = layer);
      below.title = rollout_name(kind, layer);
      below.short_title = text("L", layer, " rollout");
    }
    return named(std::move(out), kind, "-rollout", tr("{attention}: rollout", "attention"_a = kind.title));
  }

  // A rollout combines all heads.
  Text rollout_name(const Kind& kind, int64_t layer) const {
    if (kind.name == "cross" || layer == 1) return tr("Layer {layer}, all heads, rollout", "layer"_a = layer);
    return tr("Layers 1 to {layer}, all heads, rollout", "layer"_a = layer);
  }

  // One head drawn large, with its other readings beside it.
  Figure one_head(const Kind& kind, const Tensor& raw) const {
    std::vector<Tensor> maps;
    std::vector<Label> titles;
    const auto add = [&](const Tensor& map, const Text& title) {
      maps.push_back(map);
      titles.emplace_back(title);
    };
    add(raw, tr("Weights"));
    if (choice_.values) add(select(kind, seen_.attention.value_weighted), tr("Value-weighted"));
    if (choice_.rollout) add(select_layer(kind, rolled_), rollout_name(kind, first_layer()));
    const int64_t n = raw.size(2), m = raw.size(3), count = static_cast<int64_t>(maps.size());
    Tensor all = Tensor::empty({1, count, n, m});
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(maps[static_cast<size_t>(i)].ptr(), n * m, all.mutable_ptr() + i * n * m);
    Figure out =
        grid(kind, all, axes_of(seen_, kind), boxes(kind), choice_.rollout ? rollout_colours() : weight_colours());
    for (Panel& panel : out.panels) std::get<HeatMap>(panel.content).cell_values = n <= 12 && m <= 12;
    for (int64_t i = 0; count > 1 && i < count; ++i)
      out.panels[static_cast<size_t>(i)].title = titles[static_cast<size_t>(i)];
    return named(std::move(out), kind, "",
                 tr("{attention}, layer {layer}, head {head}", "attention"_a = kind.title, "layer"_a = first_layer(),
                    "head"_a = first_head()));
  }

  const SeenPair& seen_;
  const MapChoice& choice_;
  const std::vector<CellIndex>& boxes_;
  FigureUse use_;
  AttentionMaps mean_, rolled_;
};

using Json = nlohmann::ordered_json;

Json pair_json(const SeenSentence& seen) {
  return {{"source", seen.source},
          {"target", seen.target},
          {"source_tokens", seen.source_tokens},
          {"target_tokens", seen.target_tokens},
          {"log_probability", seen.log_probability}};
}

}  // namespace

Array lines_array(const std::vector<std::string>& words) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) bytes.push_back('\n');
    bytes.insert(bytes.end(), words[i].begin(), words[i].end());
  }
  return Array::of<uint8_t>({static_cast<int64_t>(bytes.size())}, bytes);
}

MapsWanted wanted_maps(const MapChoice& choice, const ModelFacts& facts) {
  MapsWanted out{.values = choice.values};
  if (choice.rollout) return out;
  const auto every_part = [&](const auto& has) { return std::ranges::all_of(facts.maps, has); };
  if (choice.layer && every_part([&](const MapGroup& g) { return *choice.layer <= g.layers; }))
    out.layer = *choice.layer - 1;
  const auto has_head = [&](const MapGroup& g) {
    for (int64_t l = 0; l < g.layers; ++l)
      if (*choice.head > g.heads_of(l)) return false;
    return true;
  };
  if (choice.head && every_part(has_head)) out.head = *choice.head - 1;
  return out;
}

std::vector<NamedMaps> chosen_maps(const SeenPair& seen, const MapChoice& choice) {
  std::vector<NamedMaps> out;
  const AttentionMaps rolled = choice.rollout ? rollout(seen.attention.weights) : AttentionMaps{};
  for (const Kind& kind : chosen_kinds(seen, choice)) {
    out.push_back(
        {kind.name, chosen(seen.attention.weights.*kind.maps, kind.name, choice.layer, choice.head, seen.wanted)});
    if (choice.values)
      out.push_back({kind.name + "_values", chosen(seen.attention.value_weighted.*kind.maps, kind.name, choice.layer,
                                                   choice.head, seen.wanted)});
    if (choice.rollout) out.push_back({kind.name + "_rollout", chosen(rolled.*kind.maps, kind.name, choice.layer, {})});
  }
  return out;
}

std::vector<Figure> attention_figures(const SeenPair& seen, const MapChoice& choice,
                                      const std::vector<CellIndex>& boxes, FigureUse use) {
  return Drawer(seen, choice, boxes, use).figures();
}

std::vector<std::string> axis_words(std::vector<std::string> tokens) {
  static const std::string kBlank = "▁";
  const auto begins_word = [](const std::string& token) { return token.starts_with(kBlank); };
  if (std::ranges::none_of(tokens, begins_word)) return tokens;
  for (std::string& token : tokens) {
    const auto first = token.empty() ? '\0' : token.front();
    const bool of_a_word =
        (first & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(first)) != 0;  // not <eos>, not a full stop
    if (token == kBlank)
      token = "␣";
    else if (begins_word(token))
      token.erase(0, kBlank.size());
    else if (of_a_word)
      token = "·" + token;
  }
  return tokens;
}

ColourScale weight_colours(ColourScale asked) {
  asked.low = asked.low.value_or(0);
  asked.high = asked.high.value_or(1);
  return asked;
}

bool lacks_words(const std::vector<Figure>& figures) {
  return std::ranges::any_of(figures,
                             [](const Figure& f) { return std::get<HeatMap>(f.panels[0].content).x_tokens.empty(); });
}

Figure attention_figure(const SeenSentence& seen, const ColourScale& colours, const std::vector<CellIndex>& boxes) {
  Figure out = heatmaps(permute(seen.attention, {1, 0, 2}), tr("source"), tr("translation"), {},
                        {.colours = weight_colours(colours),
                         .x_tokens = axis_words(seen.source_tokens),
                         .y_tokens = axis_words(seen.target_tokens)});
  for (Panel& panel : out.panels) std::get<HeatMap>(panel.content).boxes = boxes;
  return out;
}

std::string to_json(const SeenSentence& seen) {
  Json out = pair_json(seen);
  out["attention"] = nested_json<Json>(permute(seen.attention, {1, 0, 2}));
  return out.dump();
}

std::string to_json(const SeenSentence& seen, const SeenPair& pair, const MapChoice& choice) {
  Json out = pair_json(seen);
  out["source_tokens"] = pair.source_tokens;
  out["input_tokens"] = pair.input_tokens;
  for (const NamedMaps& named : chosen_maps(pair, choice)) out[named.name] = nested_json<Json>(named.maps);
  return out.dump();
}

std::string text_json(const std::string& text, const SeenPair& seen, const MapChoice& choice) {
  Json out = {{"text", text}, {"tokens", seen.source_tokens}};
  for (const NamedMaps& named : chosen_maps(seen, choice)) out[named.name] = nested_json<Json>(named.maps);
  return out.dump();
}

std::map<std::string, Array> to_arrays(const SeenSentence& seen) {
  return {{"attention", Array(seen.attention)},
          {"source_tokens", lines_array(seen.source_tokens)},
          {"output_tokens", lines_array(seen.target_tokens)}};
}

std::map<std::string, Array> to_arrays(const SeenPair& pair, const MapChoice& choice) {
  std::map<std::string, Array> arrays = {{"source_tokens", lines_array(pair.source_tokens)},
                                         {"input_tokens", lines_array(pair.input_tokens)},
                                         {"output_tokens", lines_array(pair.output_tokens)}};
  for (const NamedMaps& maps : chosen_maps(pair, choice)) arrays.emplace(maps.name, Array(maps.maps));
  return arrays;
}

std::string to_html(const SeenSentence& seen, std::vector<Figure> figures, Language language) {
  std::string drawn;
  for (Figure& f : figures) {
    f.theme = Theme::inherit;
    drawn += svg(f, language);
  }
  return text(
      "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
      plotting::xml_escaped(seen.source),
      "</title>\n"
      "<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem "
      "auto;padding:0 1rem}svg{max-width:100%;height:auto}</style>\n"
      "<h1>",
      plotting::xml_escaped(seen.source), "</h1>\n<p>", plotting::xml_escaped(seen.target), "</p>\n", drawn, "\n");
}

}  // namespace qkv::report
