// What a language model wrote, filled in or scored, as text and JSON.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/tasks/language/generator.h"

namespace QKV_API qkv {
namespace report {

/// {"prompt": "...", "prompt_tokens": [...], "texts": [{"text": "...", "end": "length", "log_probability": -3.2,
/// "tokens": [{"token": "a", "probability": 0.5}, ...]}]}
std::string to_json(const LanguageGenerator& generator, const std::string& prompt, const Continued& continued);
/// {"prompt": "...", "text": "...", "gaps": [[{"token": "cat", "probability": 0.4}, ...]]}, or "spans": ["..."]
std::string to_json(const LanguageGenerator& generator, const std::string& prompt, const Filled& filled);
/// The text, and a line of candidates for each gap of a masked model.
std::string to_text(const LanguageGenerator& generator, const Filled& filled, Language language);

/// {"file": "a.txt", "perplexity": 5.1, "nats_per_token": 1.6, "bits_per_character": 2.3, ...}
std::string to_json(LanguageObjective objective, const std::string& file, const TextScore& score);
Text to_text(LanguageObjective objective, const Text& file, const TextScore& score);

}  // namespace report
}  // namespace qkv
