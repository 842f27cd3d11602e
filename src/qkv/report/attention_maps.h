// What a model attends to while it writes a sentence: chosen layers, heads and readings as figures, arrays and JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/io/array.h"
#include "qkv/plot/figure.h"
#include "qkv/tasks/attention_maps.h"

namespace QKV_API qkv {
namespace report {

/// Layers and heads from 1; absent: all.
struct MapChoice {
  std::string kind = "all";  // encoder, decoder, cross
  std::optional<int64_t> layer, head;
  bool values = false, rollout = false;
  ColourScale colours;  // without limits: 0 to 1 for weights; 0 to the largest of each panel for a rollout, which is
                        // much flatter
};

/// A sentence pair and its attention, token by token.
struct SeenSentence {
  std::string source, target;
  std::vector<std::string> source_tokens, target_tokens;  // with <eos>
  Tensor attention;                                       // (steps, maps, T)
  double log_probability = 0;
};

/// A sentence pair in a Transformer. Queries and keys of the decoder's self-attention are its inputs, starting with
/// <bos>; rows of its cross-attention are the words that it writes.
struct SeenPair {
  TransformerAttention attention;
  std::vector<std::string> source_tokens, input_tokens, output_tokens;
  MapsWanted wanted = {};  // which maps `attention` has
};

/// The maps that a choice needs of a model, so that no others are computed: a rollout needs all of them, and so does an
/// error about a layer that a part lacks.
MapsWanted wanted_maps(const MapChoice& choice, const ModelFacts& facts);

/// An array "encoder", "encoder_values", "encoder_rollout", ... of shape (layers, heads, queries, keys), as chosen.
struct NamedMaps {
  std::string name;
  Tensor maps;
};
std::vector<NamedMaps> chosen_maps(const SeenPair& seen, const MapChoice& choice);

/// paper: titles on the first row, as in the book. terminal: titles on every panel, because panels are not in a grid.
enum class FigureUse { paper, terminal };

/// boxes: framed cells of the cross-attention.
std::vector<Figure> attention_figures(const SeenPair& seen, const MapChoice& choice,
                                      const std::vector<CellIndex>& boxes, FigureUse use);

/// The single attention map of a recurrent model; boxes: framed cells.
Figure attention_figure(const SeenSentence& seen, const ColourScale& colours, const std::vector<CellIndex>& boxes);

/// Tokens and weights: for a recurrent model "attention" (maps, steps, weights), for a Transformer every chosen map by
/// name.
std::string to_json(const SeenSentence& seen);
std::string to_json(const SeenSentence& seen, const SeenPair& pair, const MapChoice& choice);
/// {"text": "...", "tokens": [...], "decoder": [...]}: a text that a language model has read.
std::string text_json(const std::string& text, const SeenPair& seen, const MapChoice& choice);
/// Tokens as an array: UTF-8 separated by line ends, for bytes(z["source_tokens"]).decode().split("\n").
Array lines_array(const std::vector<std::string>& words);
/// The same as arrays.
std::map<std::string, Array> to_arrays(const SeenSentence& seen);
std::map<std::string, Array> to_arrays(const SeenPair& pair, const MapChoice& choice);
/// A self-contained page with the figures.
std::string to_html(const SeenSentence& seen, std::vector<Figure> figures, Language language);

/// Tokens as shown on an axis. Words are unchanged; subwords lose the mark of the blank before them (a blank alone is
/// ␣) and get a dot if they continue a word.
std::vector<std::string> axis_words(std::vector<std::string> tokens);

/// Weights are drawn from 0 to 1 unless other limits are given.
ColourScale weight_colours(ColourScale asked);

/// True if some grid has no room for words on its axes and shows positions.
bool lacks_words(const std::vector<Figure>& figures);

}  // namespace report
}  // namespace qkv
