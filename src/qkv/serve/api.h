// The explorer's API: a function from a request to an answer, both JSON text. There is no socket in it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "qkv/serve/events.h"
#include "qkv/serve/shelf.h"

namespace qkv::serve {

struct ApiRequest {
  std::string method = "GET", path, query, body;  // a body is JSON
  Language language = Language::en;               // of sentences, unless `lang` in query or body says another
};

struct ApiAnswer {
  int status = 200;
  std::string json;
  std::string type = "application/json";  // text/event-stream: `json` is a list of events
};

struct Call;
struct MapSession;
class TrainingDesk;

/// Answers the requests of docs/api.md. May be called by several threads at once.
class Api {
 public:
  Api(ModelShelf& shelf, EventHub& events);
  ~Api();

  ApiAnswer answer(const ApiRequest& request);
  /// "POST /api/v1/cues", ...: everything that is answered.
  static std::vector<std::string> endpoints();
  /// The fields of a form, "a=1&b=%20", as JSON.
  static std::string json_of_form(const std::string& form);
  /// Ends the work of all requests as soon as they can stop.
  void stop();

  static constexpr size_t kSessions = 16;                       // kept at most
  static constexpr int64_t kSessionBytes = int64_t{256} << 20;  // of all of them
  /// The maps of a sentence, kept for the rectangles that a page asks for later. The oldest ones make room.
  std::string keep(std::shared_ptr<const MapSession> session);
  std::shared_ptr<const MapSession> session(const std::string& id);

  ModelShelf& shelf() { return shelf_; }
  EventHub& events() { return events_; }

  /// Lets a page train with /api/v1/train/...: for an engine inside the page, where nobody else uses it.
  void offer_training(TrainingDesk& desk) { desk_ = &desk; }
  TrainingDesk* desk() const { return desk_; }

 private:
  ApiAnswer answer_plainly(const ApiRequest& request);
  ApiAnswer run(const ApiRequest& request, Call& call);
  std::shared_ptr<std::atomic<bool>> begin_view(const std::string& view);
  void end_view(const std::string& view, const std::shared_ptr<std::atomic<bool>>& stop);

  ModelShelf& shelf_;
  EventHub& events_;
  TrainingDesk* desk_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::atomic<bool>>> views_;
  std::map<uint64_t, std::shared_ptr<const MapSession>> sessions_;
  uint64_t next_session_ = 1, next_view_ = 1;
  std::atomic<bool> stopped_ = false;
  std::counting_semaphore<16> workers_{4};  // requests that compute at once
};

}  // namespace qkv::serve
