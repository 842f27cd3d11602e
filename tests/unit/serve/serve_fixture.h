// Small models, trained once for all tests, and requests to an Api without a socket.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/core/catalogue.h"
#include "qkv/core/chinese.h"
#include "qkv/serve/api.h"
#include "qkv/tasks/language/run.h"
#include "qkv/tasks/translation/run.h"

namespace qkv::serve {

namespace fs = std::filesystem;

inline fs::path serve_folder(const std::string& name) {
  return fs::temp_directory_path() / ("qkv-serve-" + std::to_string(::getpid())) / name;
}

inline TranslationConfig small_translation(ModelKind kind, const std::string& model, int64_t epochs = 1) {
  TranslationConfig config;
  config.set_kind(kind);
  config.parse("data: {pairs: en-fr, tokenizer: spaces, min_count: 1, corpus_size: 200}\nmodel: {" + model +
                   "}\ntraining: {epochs: " + std::to_string(epochs) + "}\n",
               "test");
  return config;
}
inline TranslationConfig small_transformer(int64_t epochs = 1) {
  return small_translation(ModelKind::transformer, "hidden: 16, layers: 2, heads: 2, ffn: 16", epochs);
}
inline TranslationConfig small_bahdanau() {
  return small_translation(ModelKind::seq2seq, "hidden: 16, embed: 16, attention: additive");
}

inline LanguageConfig small_language(const fs::path& text, int64_t context) {
  std::ofstream file(text);
  for (int i = 0; i < context / 7 + 50; ++i) file << "the cat " << i % 10 << " sleeps and reads .\n";
  file.close();
  LanguageConfig config;
  config.data.text = text.string();
  config.data.tokenizer = TextTokens::characters;
  config.model.context = context;
  config.model.transformer.hidden = config.model.transformer.ffn = 32;
  config.model.transformer.heads = config.model.transformer.layers = 2;
  config.training.epochs = 1;
  config.training.batch_rows = 1;
  return config;
}

/// Sentences in Chinese are those of the program.
inline void with_chinese() {
  static const bool once = [] {
    add_catalogue(Language::zh, std::string(chinese_catalogue()));
    return true;
  }();
  static_cast<void>(once);
}

/// An Api on a folder of models.
class Served {
 public:
  explicit Served(const std::string& folder) : shelf(folder), api(shelf, events) { shelf.scan(); }

  nlohmann::json ask(const std::string& path, const nlohmann::json& body, int status = 200) {
    const ApiAnswer answer = api.answer({"POST", path, "", body.dump()});
    EXPECT_EQ(answer.status, status) << path << " " << body.dump() << "\n" << answer.json.substr(0, 500);
    return nlohmann::json::parse(answer.json);
  }
  nlohmann::json get(const std::string& path, const std::string& query = "", Language language = Language::en) {
    return nlohmann::json::parse(api.answer({"GET", path, query, "", language}).json);
  }
  std::string id(const std::string& name) const {
    for (const ShelfModel& m : shelf.models())
      if (m.name == name) return m.id;
    return "?";
  }

  ModelShelf shelf;
  EventHub events;
  Api api;
};

/// A Transformer, a Bahdanau model and a language model, trained once per process.
class ServeModels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = serve_folder("models");
    fs::create_directories(folder);
    TranslationRun(small_transformer(), folder / "transformer", ExistingRun::discard).train();
    TranslationRun(small_bahdanau(), folder / "bahdanau", ExistingRun::discard).train();
    served = std::make_unique<Served>(folder);
  }
  static void TearDownTestSuite() {
    served.reset();
    fs::remove_all(folder);
  }
  inline static fs::path folder;
  inline static std::unique_ptr<Served> served;
};

}  // namespace qkv::serve
