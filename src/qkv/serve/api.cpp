// Requests find their endpoint here; every failure becomes an answer with one line.
#include "qkv/serve/api.h"

#include <algorithm>

#include "qkv/serve/call.h"
#include "qkv/serve/map_session.h"
#include "qkv/tensor/out_of_memory.h"

namespace qkv::serve {
namespace {

constexpr int kDeepest = 32;
const std::string kBase = "/api/v1";

struct Endpoint {
  const char *method, *path;
  Json (*run)(const Call&);
};
constexpr Endpoint kEndpoints[] = {{"GET", "/health", health},
                                   {"GET", "/api/v1/about", about},
                                   {"GET", "/api/v1/models", models},
                                   {"GET", "/api/v1/picture", picture},
                                   {"POST", "/api/v1/cues", cues},
                                   {"POST", "/api/v1/regress", regress},
                                   {"POST", "/api/v1/regress/learn", regress_learn},
                                   {"POST", "/api/v1/attend", attend_steps},
                                   {"POST", "/api/v1/translate", translate},
                                   {"POST", "/api/v1/maps", maps},
                                   {"POST", "/api/v1/map", map_part},
                                   {"POST", "/api/v1/heads", heads},
                                   {"POST", "/api/v1/blocks", blocks},
                                   {"POST", "/api/v1/compare", compare},
                                   {"POST", "/api/v1/positions", positions},
                                   {"POST", "/api/v1/next", next_tokens},
                                   {"POST", "/api/v1/generate", generate},
                                   {"POST", "/api/v1/classify", classify},
                                   {"POST", "/translate", libre_translate},
                                   {"GET", "/languages", libre_languages},
                                   {"GET", "/v1/models", openai_models},
                                   {"POST", "/v1/completions", openai_completions}};

// For an engine inside a page alone (docs/wasm.md).
constexpr Endpoint kPageEndpoints[] = {{"POST", "/api/v1/train/start", train_start},
                                       {"POST", "/api/v1/train/advance", train_advance},
                                       {"POST", "/api/v1/train/look", train_look},
                                       {"POST", "/api/v1/train/stop", train_stop}};

// The depth of nested lists and objects, before a parser recurses into them.
bool too_deep(const std::string& json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

std::string printed(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

ApiAnswer failed(int status, const std::string& line, const std::string& hint = "") {
  Json out = {{"error", line}};
  if (!hint.empty()) out["hint"] = hint;
  return {status, printed(out)};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool coded =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    out += coded            ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]))
           : text[i] == '+' ? ' '
                            : text[i];
    if (coded) i += 2;
  }
  return out;
}

std::map<std::string, std::string> parse_query(const std::string& query) {
  std::map<std::string, std::string> out;
  for (size_t begin = 0; begin < query.size();) {
    const size_t end = std::min(query.find('&', begin), query.size()), equal = std::min(query.find('=', begin), end);
    out[unescaped(query.substr(begin, equal - begin))] =
        equal < end ? unescaped(query.substr(equal + 1, end - equal - 1)) : "";
    begin = end + 1;
  }
  return out;
}

// "ID" of "/api/v1/runs/ID/metrics", or what is between other ends.
std::optional<std::string> between(const std::string& path, const std::string& before, const std::string& after) {
  if (!path.starts_with(before) || !path.ends_with(after) || path.size() <= before.size() + after.size()) return {};
  return path.substr(before.size(), path.size() - before.size() - after.size());
}

}  // namespace

std::string Api::json_of_form(const std::string& form) {
  Json out = Json::object();
  for (const auto& [key, value] : parse_query(form)) out[key] = value;
  return printed(out);
}

Api::Api(ModelShelf& shelf, EventHub& events) : shelf_(shelf), events_(events) {}
Api::~Api() = default;

std::vector<std::string> Api::endpoints() {
  std::vector<std::string> out = {"GET " + kBase + "/runs/ID/metrics", "GET /v1/models/NAME"};
  for (const Endpoint& e : kEndpoints) out.push_back(text(e.method, " ", e.path));
  return out;
}

void Api::stop() {
  stopped_ = true;
  const std::lock_guard lock(mutex_);
  for (auto& [view, stop] : views_) *stop = true;
}

std::string Api::keep(std::shared_ptr<const MapSession> session) {
  const int64_t bytes = session->bytes();
  require(bytes <= kSessionBytes, "the maps of this text take {bytes} bytes; at most {most} are kept",
          "bytes"_a = bytes, "most"_a = kSessionBytes);
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_session_++;
  sessions_[number] = std::move(session);
  const auto held = [this] {
    int64_t sum = 0;
    for (const auto& [at, kept] : sessions_) sum += kept->bytes();
    return sum;
  };
  while (sessions_.size() > kSessions || held() > kSessionBytes) sessions_.erase(sessions_.begin());
  return "k" + std::to_string(number);
}

std::shared_ptr<const MapSession> Api::session(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, session] : sessions_)
    if (id == "k" + std::to_string(number)) return session;
  throw Refused(404, tr("there is no session {id}", "id"_a = id),
                tr("only the last ones are kept, {count} at most: ask /api/v1/maps again", "count"_a = kSessions));
}

std::shared_ptr<std::atomic<bool>> Api::begin_view(const std::string& view) {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  const std::lock_guard lock(mutex_);
  if (stopped_) *stop = true;
  const std::string key = view.empty() ? " " + std::to_string(next_view_++) : view;
  if (const auto old = views_.find(key); old != views_.end()) *old->second = true;
  views_[key] = stop;
  return stop;
}

void Api::end_view(const std::string& view, const std::shared_ptr<std::atomic<bool>>& stop) {
  const std::lock_guard lock(mutex_);
  std::erase_if(views_,
                [&](const auto& entry) { return entry.second == stop && (view.empty() || entry.first == view); });
}

ApiAnswer Api::run(const ApiRequest& request, Call& call) {
  const auto run = between(request.path, kBase + "/runs/", "/metrics"),
             model = between(request.path, "/v1/models/", "");
  const bool gets = request.method == "GET";
  if (run && gets) return {200, printed(run_metrics(call, *run))};
  if (model && gets) return {200, printed(openai_model(call, *model))};
  bool known = run || model;
  std::vector<Endpoint> all(std::begin(kEndpoints), std::end(kEndpoints));
  if (desk_) all.insert(all.end(), std::begin(kPageEndpoints), std::end(kPageEndpoints));
  for (const Endpoint& e : all) {
    if (request.path != e.path) continue;
    known = true;
    if (request.method != e.method) continue;
    const Json out = e.run(call);
    return out.is_string() ? ApiAnswer{200, out.get<std::string>(), "text/event-stream"} : ApiAnswer{200, printed(out)};
  }
  if (known)
    return failed(405,
                  call.say(tr("{method} is not for {path}", "method"_a = request.method, "path"_a = request.path)));
  return failed(404, call.say(tr("there is no {path}", "path"_a = request.path)),
                call.say(tr("docs/api.md lists them")));
}

ApiAnswer Api::answer(const ApiRequest& request) {
  ApiAnswer out = answer_plainly(request);
  // Clients of OpenAI's form expect an object.
  if (out.status != 200 && request.path.starts_with("/v1/")) {
    Json wrapped = Json::parse(out.json);
    wrapped["error"] = {{"message", wrapped["error"]},
                        {"type", out.status < 500 ? "invalid_request_error" : "server_error"},
                        {"param", nullptr},
                        {"code", nullptr}};
    out.json = printed(wrapped);
  }
  return out;
}

ApiAnswer Api::answer_plainly(const ApiRequest& request) {
  Language language = request.language;
  const auto say = [&](const Text& text) { return text.in(language); };
  const auto no_memory = [&] { return failed(503, say(tr("there is not enough memory for this request"))); };
  const auto query = parse_query(request.query);
  if (const auto word = query.find("lang"); word != query.end() && word->second == "zh") language = Language::zh;
  if (too_deep(request.body))
    return failed(400, say(tr("the JSON is nested more than {most} levels deep", "most"_a = kDeepest)));
  Json body = Json::object();
  if (!request.body.empty()) {
    try {
      body = Json::parse(request.body);
    } catch (const Json::exception& e) {
      const bool overflow = e.id == 406;
      return failed(400, overflow ? say(tr("a number in the request does not fit in a double"))
                                  : say(tr("the request is not JSON")));
    }
  }
  if (!body.is_object()) return failed(400, say(tr("the request must be a JSON object")));
  Call call{*this, body, query};
  std::shared_ptr<std::atomic<bool>> stop;
  bool working = false;
  ApiAnswer out;
  try {
    const std::string heard = language == Language::zh ? "zh" : "en";
    const std::string word = call.query.contains("lang") ? call.query["lang"] : call.fields().text("lang", heard);
    if (word != "en" && word != "zh") refuse("lang must be en or zh, got {word}", "word"_a = word);
    language = call.language = word == "zh" ? Language::zh : Language::en;
    call.view = call.fields().text("view", "");
    stop = begin_view(call.view);
    call.stop = stop.get();
    if (request.method == "POST") {
      workers_.acquire();
      working = true;
      call.go_on();
    }
    out = run(request, call);
  } catch (const Superseded&) {
    out = failed(409, "superseded");
  } catch (const Refused& e) {
    out = failed(e.status(), say(e.message()), say(e.hint()));
  } catch (const OutOfMemory&) {
    out = no_memory();
  } catch (const Error& e) {
    out = failed(400, say(e.message()), say(e.hint()));
  } catch (const std::bad_alloc&) {
    out = no_memory();
  } catch (const std::exception& e) {
    out = failed(500, e.what());
  }
  if (working) workers_.release();
  if (stop) end_view(call.view, stop);
  return out;
}

}  // namespace qkv::serve
