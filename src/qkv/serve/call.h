// What an endpoint gets and returns, and checked access to the fields of a request.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/core/language.h"
#include "qkv/core/names.h"
#include "qkv/serve/api.h"
#include "qkv/tensor/tensor.h"

namespace qkv::serve {

using Json = nlohmann::ordered_json;

/// An error with an HTTP status of its own; other errors of a request are 400.
class Refused : public Error {
 public:
  Refused(int status, Text message, Text hint = {}) : Error(std::move(message), std::move(hint)), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// A newer request of the same view has come: the answer is 409.
struct Superseded {};

inline constexpr int64_t kMostTextBytes = 32'768;

/// The fields of a JSON object. A missing, mistyped or impossible value is an error that names the field, the value and
/// what was expected.
class Fields {
 public:
  explicit Fields(const Json& object, std::string name = "");
  bool has(const char* key) const;
  const Json& at(const char* key) const;
  std::string text(const char* key) const;
  std::string text(const char* key, const std::string& absent) const { return has(key) ? text(key) : absent; }
  double number(const char* key, double low, double high) const;
  double number(const char* key, double low, double high, double absent) const {
    return has(key) ? number(key, low, high) : absent;
  }
  int64_t whole(const char* key, int64_t low, int64_t high) const;
  int64_t whole(const char* key, int64_t low, int64_t high, int64_t absent) const {
    return has(key) ? whole(key, low, high) : absent;
  }
  bool flag(const char* key, bool absent) const;
  std::vector<double> numbers(const char* key, size_t most) const;
  /// Rows of equal length.
  Tensor matrix(const char* key, int64_t most_rows, int64_t most_columns) const;
  Fields object(const char* key) const { return Fields(at(key), path(key)); }
  std::vector<Fields> objects(const char* key, size_t most) const;
  template <Named E>
  E choice(const char* key, E absent) const {
    return has(key) ? parse_name<E>(text(key), path(key)) : absent;
  }
  std::string path(const char* key) const { return name_.empty() ? key : name_ + "." + key; }

 private:
  const Json& object_;
  std::string name_;
};

/// One request on its way through an endpoint.
struct Call {
  Api& api;
  const Json& body;
  std::map<std::string, std::string> query;  // ?key=value
  Language language = Language::en;
  std::string view = {};
  const std::atomic<bool>* stop = nullptr;

  Fields fields() const { return Fields(body); }
  std::string say(const Text& text) const { return text.in(language); }
  /// Between two pieces of work.
  void go_on() const {
    if (stop && stop->load(std::memory_order_relaxed)) throw Superseded{};
  }
};

/// A tensor as nested lists.
Json nested(const Tensor& x);
/// "qkv translate ..." with quoted arguments.
std::string command_line(const std::vector<std::string>& words);
/// "qkv ask PATH BODY" for the question of this call.
std::string ask_line(const Call& call, const std::string& path);

// The endpoints, one file per group of benches.
Json health(const Call& call);
Json about(const Call& call);
Json models(const Call& call);
Json cues(const Call& call);
Json attend_steps(const Call& call);
Json regress(const Call& call);
Json regress_learn(const Call& call);
Json translate(const Call& call);
Json maps(const Call& call);
Json map_part(const Call& call);
Json heads(const Call& call);
Json blocks(const Call& call);
Json compare(const Call& call);
Json positions(const Call& call);
Json next_tokens(const Call& call);
Json generate(const Call& call);
Json classify(const Call& call);
Json picture(const Call& call);
Json run_metrics(const Call& call, const std::string& id);
Json train_start(const Call& call);
Json train_advance(const Call& call);
Json train_look(const Call& call);
Json train_stop(const Call& call);
// For clients of other programs.
Json libre_translate(const Call& call);
Json libre_languages(const Call& call);
Json openai_models(const Call& call);
Json openai_model(const Call& call, const std::string& name);
Json openai_completions(const Call& call);  // a text of events if "stream" is true

}  // namespace qkv::serve
