// BERT's encoders as Hugging Face folders have them: BERT, MiniLM and, with other names and positions, RoBERTa.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/text_encoder.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/weight_table.h"

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
  int64_t pad = 0;
};
BertConfig read_bert_config(const std::string& folder, Architecture architecture);

/// The model that settings describe, with random weights.
EncoderModel make_bert_model(const BertConfig& config, const Rng& rng);

/// The table of a folder's names, and what it refers to.
struct BertTable {
  std::deque<std::string> names;
  std::vector<WeightRule> rules;
  std::vector<WeightRepeat> repeats;
  std::vector<std::string_view> ignored;
  WeightTable table;
};
/// `weights` decide how the folder spells the names; without them, the names are those that transformers writes.
std::unique_ptr<const BertTable> bert_table(Architecture architecture, const BertConfig& config,
                                            const WeightSource* weights);

/// The model of a folder with its weights.
EncoderModel open_bert_model(const std::string& folder, Architecture architecture, const BertConfig& config);

}  // namespace qkv
