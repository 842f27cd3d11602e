// Vectors of texts and the cosines between them, as JSON, a table and a figure; gaps that an encoder filled.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/plot/figure.h"
#include "qkv/report/classifications.h"
#include "qkv/tasks/encoding/hidden_words.h"
#include "qkv/tasks/encoding/sentence_encoder.h"

namespace QKV_API qkv {

/// The cosine between every two rows of (n, width): (n, n). A row of zeros has cosine 0 to all.
Tensor cosines(const Tensor& rows);

namespace report {

/// {"text": "...", "tokens": 7, "left_out": 0, "vector": [...]}, or "cosines" with all texts.
std::string to_json(const std::string& text, const TextVectors& vectors, const Tensor& rows, int64_t row,
                    bool are_cosines);
/// A row for every text with its number, its cosines and its beginning.
std::string cosine_table(const std::vector<std::string>& texts, const Tensor& cosines);
Figure cosine_figure(const std::vector<std::string>& texts, const Tensor& cosines);

/// As for a language model (report/language.h).
std::string to_json(const SentenceEncoder& encoder, const std::string& prompt, const Filled& filled);
std::string to_text(const SentenceEncoder& encoder, const Filled& filled, Language language);

/// The likeliest classes of every text.
std::vector<Classification> classifications(const SentenceEncoder& encoder, const std::vector<std::string>& texts,
                                            const Tensor& probabilities, int64_t top);

}  // namespace report
}  // namespace qkv
