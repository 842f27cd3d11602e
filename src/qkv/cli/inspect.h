// The options of qkv inspect, and what it does for each task. One inspect_TASK.cpp each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qkv/cli/colour_options.h"
#include "qkv/cli/command.h"
#include "qkv/report/attention_maps.h"

namespace qkv::cli {

struct InspectOptions {
  std::string model;
  std::vector<std::string> words;  // the sentence, the text, or image files
  std::string pairs;
  std::optional<std::string> target, gold, output;
  std::optional<int64_t> line, beam, base, steps;
  std::optional<std::string> patch;  // "ROW,COLUMN", from 1
  bool resize = false, by_word = false;
  report::MapChoice choice;
  ColourOptions colours;
  bool json = false;

  std::string sentence() const;  // the words with blanks between them
  /// Whether the output is the explorer's page with this model's answers inside. What that page has no bench for is a
  /// page of figures.
  bool writes_explorer() const;
  bool writes(std::string_view ending) const { return output && output->ends_with(ending); }
};

int inspect_translation(const InspectOptions& options, const Global& global);
int inspect_vision(const InspectOptions& options, const Global& global);
int inspect_language(const InspectOptions& options, const Global& global);
int inspect_encoder(const InspectOptions& options, const Global& global);

/// Draws figures on the terminal or to the output file, under `title`; for .html as a page that `html` makes.
int show_figures(const InspectOptions& options, const std::string& title, const std::vector<Figure>& figures,
                 const std::function<std::string()>& html, const Global& global);
/// Writes the explorer's page with what it asks about this sentence, and notes what the file leaves out.
int write_explorer(const InspectOptions& options, const std::string& text, const std::optional<std::string>& target,
                   const Global& global);
/// The attention of a text to itself, in the form that the options ask for.
int show_text(const InspectOptions& options, const std::string& text, const report::SeenPair& seen,
              const report::SeenSentence& title, const Global& global);
/// Writes arrays to the .npz file that the output names.
int write_arrays(const InspectOptions& options, const std::string& title, const std::map<std::string, Array>& arrays,
                 const Global& global);

}  // namespace qkv::cli
