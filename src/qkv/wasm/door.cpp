// The engine's door for a page: requests of the explorer's API as text, answers as text. docs/wasm.md has the protocol.
#include <cstring>
#include <string>

#include "qkv/core/catalogue.h"
#include "qkv/io/atomic_file.h"
#include "qkv/serve/api.h"
#include "qkv/serve/training_desk.h"

namespace {

struct Engine {
  Engine() : shelf("/models"), api(shelf, events), desk("/training", shelf) {
    qkv::make_folder("/models");
    api.offer_training(desk);
    shelf.scan();
  }
  qkv::serve::ModelShelf shelf;
  qkv::serve::EventHub events;
  qkv::serve::Api api;
  qkv::serve::TrainingDesk desk;
  std::string answer;
  int status = 0;
};

Engine& engine() {
  static Engine one;
  return one;
}

}  // namespace

extern "C" {

/// Looks at the folder /models again, after files were written there.
__attribute__((used)) void qkv_scan() { engine().shelf.scan(); }

/// Answers a request; `chinese` is the language of sentences. The text lives until the next call.
__attribute__((used)) const char* qkv_ask(const char* method, const char* path, const char* query, const char* body,
                                          int chinese) {
  Engine& e = engine();
  qkv::serve::ApiAnswer answer =
      e.api.answer({method, path, query, body, chinese != 0 ? qkv::Language::zh : qkv::Language::en});
  e.status = answer.status;
  e.answer = std::move(answer.json);
  return e.answer.c_str();
}

/// The HTTP status of the last answer.
__attribute__((used)) int qkv_status() { return engine().status; }

/// The sentences of another language, a .po file.
__attribute__((used)) void qkv_catalogue(const char* po) { qkv::add_catalogue(qkv::Language::zh, po); }
}
