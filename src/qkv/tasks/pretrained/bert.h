// BERT's encoders as Hugging Face folders have them: BERT, MiniLM and, with other names and positions, RoBERTa.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/text_encoder.h"
#include "qkv/tasks/pretrained/folder.h"

namespace QKV_API qkv {

/// What a folder's encoder was trained with, as far as we have it.
enum class EncoderHead { none, words, classes };
constexpr std::array<std::string_view, 3> names(EncoderHead) { return {"none", "words", "classes"}; }

/// How scores of classes become probabilities: one class is right, or each may be.
enum class ClassOutputs { one, several };

/// What config.json says.
struct BertConfig {
  TextEncoderConfig model;
  EncoderHead head = EncoderHead::none;
  std::vector<std::string> classes;  // with the head of classes
  ClassOutputs outputs = ClassOutputs::one;
  bool tied = true;  // the head of words has the embedding's matrix
  int32_t pad = 0;
};
BertConfig read_bert_config(const std::string& folder, Architecture architecture);

/// The model of a folder with its weights.
EncoderModel open_bert_model(const std::string& folder, Architecture architecture, const BertConfig& config);

}  // namespace qkv
