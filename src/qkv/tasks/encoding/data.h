// From the data block of a configuration to texts as an encoder reads them, with their classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/tasks/encoding/config.h"

namespace QKV_API qkv {

struct LabelledTexts {
  std::vector<EncodedText> texts;
  std::vector<int32_t> labels;  // numbers of classes; none with the head of words
  int64_t cut = 0;              // texts that were longer than data.max_tokens
  int64_t count() const { return std::ssize(texts); }
};

struct EncodingData {
  LabelledTexts train, valid;        // valid is empty without validation
  std::vector<std::string> classes;  // in the order of their numbers; none with the head of words
};

/// Reads the files that the configuration names; empty lines are skipped. With the head of classes, `known` are classes
/// whose numbers stay as they are if all those of the files are among them; else the classes are those of the training
/// texts, in the order of their names.
EncodingData read_encoding_data(const EncodingConfig& config, const PretrainedTokenizer& tokenizer,
                                const std::vector<std::string>& known);

/// encoder.json of a run: the names of the classes.
void save_encoder_classes(const std::vector<std::string>& classes, const std::string& folder);
std::vector<std::string> load_encoder_classes(const std::string& folder);

}  // namespace qkv
