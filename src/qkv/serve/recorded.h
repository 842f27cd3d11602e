// A page in one file: the explorer with recorded answers inside, for a browser without a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::serve {

struct RecordOptions {
  std::string text;
  std::optional<std::string> target = {};        // instead of the model's own translation
  std::optional<std::string> part = {};          // the map to show first: "cross", "encoder", "decoder"
  std::optional<int64_t> layer = {}, head = {};  // from 1
  std::optional<int64_t> beam = {};              // hypotheses kept while translating
  int64_t most_bytes = int64_t{12} << 20;        // of the file
  Language language = Language::en;
};

struct RecordedPage {
  std::string html;
  std::string title;           // what the model wrote, or the text
  std::vector<Text> left_out;  // what is not in the file, in sentences; the page shows them too
};

/// The page with the bench of this model: heads for a Transformer that translates, translate for another translation
/// model, language for a causal language model. `folder` is a run folder. The page asks as it would ask a server, and
/// gets what the server would have answered.
RecordedPage recorded_page(const std::string& folder, const RecordOptions& options);

}  // namespace qkv::serve
