// Where a model looks while it writes a sentence: which attentions, layers and heads, which reading of them; figures,
// arrays and JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/io/array.h"
#include "qkv/plot/figure.h"
#include "qkv/tasks/attention_maps.h"

namespace qkv::report {

/// Layers and heads from 1; absent: all.
struct MapChoice {
  std::string kind = "all";  // encoder, decoder, cross
  std::optional<int64_t> layer, head;
  bool values = false, rollout = false;
  ColourScale colours;  // without limits: 0 to 1 for weights, for a rollout, which is much flatter, 0 to the largest of
                        // each panel
};

/// A sentence pair and the attention behind it, token by token.
struct SeenSentence {
  std::string source, target;
  std::vector<std::string> source_tokens, target_tokens;  // ends included
  Tensor attention;                                       // (steps, maps, T)
  double log_probability = 0;
};

/// One sentence pair in a Transformer. Queries and keys of the decoder's self-attention are its inputs, from <bos> on;
/// rows of its cross attention are the words it writes then.
struct SeenPair {
  TransformerAttention attention;
  std::vector<std::string> source_tokens, input_tokens, output_tokens;
};

/// What an array is: "encoder", "encoder_values", "encoder_rollout", ... with (layers, heads, queries, keys) after the
/// choice.
struct NamedMaps {
  std::string name;
  Tensor maps;
};
std::vector<NamedMaps> chosen_maps(const SeenPair& seen, const MapChoice& choice);

/// paper: titles on the first row, as in the book. terminal: on every panel, for there they do not stay in their grid.
enum class FigureUse { paper, terminal };

/// boxes: cells of the cross attention with a frame.
std::vector<Figure> attention_figures(const SeenPair& seen, const MapChoice& choice,
                                      const std::vector<CellIndex>& boxes, Language language, FigureUse use);

/// The one attention of a recurrent model; boxes: cells with a frame.
Figure attention_figure(const SeenSentence& seen, const ColourScale& colours, const std::vector<CellIndex>& boxes,
                        Language language);

/// Tokens and weights: of a recurrent model "attention", maps of steps of weights; of a Transformer every chosen map by
/// its name.
std::string to_json(const SeenSentence& seen);
std::string to_json(const SeenSentence& seen, const SeenPair& pair, const MapChoice& choice);
/// The same as arrays; tokens are UTF-8 with a line end between them, for
/// bytes(z["source_tokens"]).decode().split("\n").
std::map<std::string, Array> to_arrays(const SeenSentence& seen);
std::map<std::string, Array> to_arrays(const SeenPair& pair, const MapChoice& choice);
/// A page that stands alone, with the figures drawn in it.
std::string to_html(const SeenSentence& seen, std::vector<Figure> figures);

/// Tokens as an axis shows them. Words stay what they are; subwords lose the mark of a blank before them (a blank alone
/// is ␣) and have a point where they go on with a word.
std::vector<std::string> axis_words(std::vector<std::string> tokens);

/// Weights are drawn from 0 to 1 unless other limits were asked for.
ColourScale weight_colours(ColourScale asked);

/// Some grid has no room for words on its axes and shows positions.
bool lacks_words(const std::vector<Figure>& figures);

}  // namespace qkv::report
