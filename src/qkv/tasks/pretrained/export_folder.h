// What the exports of all architectures share: the files of a folder before anything is written, and refusals.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/io/settings.h"
#include "qkv/tasks/encoding/sentence_encoder.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/vision/classifier.h"

namespace qkv {

struct ExportFolder {
  Architecture architecture = Architecture::marian;
  std::string config;                         // config.json
  std::map<std::string, std::string> others;  // further files by name
  std::map<std::string, Tensor> weights;
  const PretrainedTokenizer* tokenizer = nullptr;  // null: the model has none
  std::vector<std::string> left_out = {};          // tensors of the folder with which we do not compute
};

// A setting and the only value of it that an architecture has.
struct NeededSetting {
  const char *setting, *value;
};
void check_needed(const std::string& model, const Settings& settings, std::span<const NeededSetting> needed,
                  std::string_view architecture);

// float32 as the shortest decimal that reads back as the same value.
double plain_number(float x);

ExportFolder bert_folder(const std::string& model, const SentenceEncoder& encoder);
ExportFolder vit_folder(const std::string& model, const Classifier& classifier);

}  // namespace qkv
