// One training that a page carries out itself, in slices of time between its other requests.
#pragma once

#include <memory>
#include <string>

#include "qkv/serve/call.h"

namespace qkv::serve {

/// Holds at most one training. Without pairs in the request it reads book.tsv of its folder, if that is there, or else
/// the built-in corpus. What it trains is a run folder of the shelf.
class TrainingDesk {
 public:
  TrainingDesk(std::string folder, ModelShelf& shelf);
  ~TrainingDesk();

  Json start(const Call& call);
  /// Updates for `milliseconds`, at least one.
  Json advance(const Call& call);
  /// Translations of some sentences by the weights of the moment, with the attention of every head.
  Json look(const Call& call);
  void stop();

 private:
  class Watcher;
  struct Session;
  Session& session() const;
  std::string folder_;
  ModelShelf& shelf_;
  std::unique_ptr<Session> session_;
  int started_ = 0;
};

}  // namespace qkv::serve
