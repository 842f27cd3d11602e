// Joins the parts: plug-in, gate, API, page, events and the watch over the folder of models.
#include "qkv/serve/server.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/random.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "qkv/core/check.h"
#include "qkv/core/system_reason.h"
#include "qkv/serve/api.h"
#include "qkv/serve/gate.h"
#include "qkv/serve/models_json.h"
#include "qkv/serve/page.h"
#include "qkv/serve/trainer.h"

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;

constexpr int kMostStreams = 24;
constexpr int kArenas = 4;     // of the allocator: as many as requests that compute at once
constexpr double kQuiet = 15;  // seconds between two signs of life on an event stream
constexpr double kGlance = 1;  // seconds until it is asked whether the listener is still there

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string random_token() {
  unsigned char bytes[16];
  require(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "the system gives no random numbers");
  std::string out;
  for (const unsigned char b : bytes) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

std::string etag_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return "\"" + std::to_string(hash) + "\"";
}

class Handler : public HttpHandler {
 public:
  Handler(Api& api, EventHub& events) : api_(api), events_(events), etag_(etag_of(page_html())) {}
  GateRules rules;

  HttpAnswer head(const HttpRequest& request) override {
    HttpAnswer out = refused(request, rules).value_or(HttpAnswer{});
    harden(out);
    return out;
  }

  HttpAnswer answer(const HttpRequest& request) override {
    HttpAnswer out = routed(request);
    harden(out);
    return out;
  }

  HttpAnswer too_large(const HttpRequest& request) override {
    HttpAnswer out = serve::too_large(request, rules.body_bytes);
    harden(out);
    return out;
  }

 private:
  HttpAnswer routed(const HttpRequest& request) {
    const bool gets = request.method == "GET" || request.method == "HEAD";
    if (gets && (request.path == "/" || request.path == "/index.html")) return page(request);
    if (gets && request.path == "/api/v1/events") return stream(asked_language(request));
    const std::string body = is_form(request) ? Api::json_of_form(request.body) : request.body;
    const ApiAnswer answer = api_.answer({request.method == "HEAD" ? "GET" : request.method, request.path,
                                          request.query, body, asked_language(request)});
    return {answer.status, {{"Content-Type", answer.type}}, answer.json};
  }

  HttpAnswer page(const HttpRequest& request) const {
    HttpAnswer out{200,
                   {{"Content-Type", "text/html; charset=utf-8"},
                    {"Content-Security-Policy", std::string(page_policy())},
                    {"Cache-Control", "no-cache"},
                    {"ETag", etag_}},
                   {}};
    const auto known = request.headers.find("if-none-match");
    if (known != request.headers.end() && known->second == etag_)
      out.status = 304;
    else
      out.lasting = page_html();
    return out;
  }

  HttpAnswer stream(Language language) {
    if (streams_.fetch_add(1) >= kMostStreams) {
      --streams_;
      return error_answer(503, tr("too many pages are listening: at most {most} can", "most"_a = kMostStreams),
                          language);
    }
    const std::shared_ptr<void> counted(nullptr, [this](void*) { --streams_; });
    HttpAnswer out{200, {{"Content-Type", "text/event-stream"}}, {}};
    // The list of models has sentences in it, and is written for each listener in its language.
    const auto models = [this, language] { return dumped(models_json(api_.shelf(), language)); };
    out.stream = [this, counted, models, number = events_.next(), first = true,
                  quiet = 0.0](std::string& piece) mutable {
      if (std::exchange(first, false)) {
        piece = "retry: 2000\n\nevent: models\ndata: " + models() + "\n\n";
        return true;
      }
      const auto event = events_.wait(number, kGlance);
      if (!event && events_.closed()) return false;
      quiet = event ? 0 : quiet + kGlance;
      if (event) piece = "event: " + event->name + "\ndata: " + (event->json.empty() ? models() : event->json) + "\n\n";
      if (quiet < kQuiet) return true;
      quiet = 0;
      piece = ": still here\n\n";
      return true;
    };
    return out;
  }

  Api& api_;
  EventHub& events_;
  std::string etag_;
  std::atomic<int> streams_ = 0;
};

HttpStart load_plugin() {
  const std::string path = (fs::read_symlink("/proc/self/exe").parent_path() / QKV_HTTP_PLUGIN).lexically_normal();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* start = library ? ::dlsym(library, "qkv_http_start") : nullptr;
  if (!start) {
    const char* reason = ::dlerror();
    throw Error(tr("cannot load {path}: {reason}", "path"_a = path, "reason"_a = reason ? reason : "?"));
  }
  return reinterpret_cast<HttpStart>(start);
}

// A server that has its port, but answers nobody yet.
std::unique_ptr<HttpServer> open_server(const ServeOptions& options) {
  const HttpStart start = load_plugin();
  HttpOptions http;
  http.address = options.listen.value_or("127.0.0.1");
  const int tries = options.port ? 1 : kPortsTried;
  int error = 0;
  for (int i = 0; i < tries; ++i) {
    http.port = static_cast<uint16_t>(options.port.value_or(kFirstPort) + i);
    if (HttpServer* server = start(http, error)) return std::unique_ptr<HttpServer>(server);
    if (error != EADDRINUSE) break;
  }
  const Text reason = verbatim(std::strerror(error));
  if (error == EADDRINUSE && options.port)
    throw Error(tr("port {port} is in use by another program", "port"_a = static_cast<int64_t>(*options.port)),
                tr("--port N takes another one; without it, a free one is found"));
  throw Error(tr("cannot listen on {address}:{port}: {reason}", "address"_a = http.address,
                 "port"_a = static_cast<int64_t>(http.port), "reason"_a = reason),
              tr("--port N takes another port"));
}

// Looks at the folder once per second and reports what changed.
class Watch {
 public:
  Watch(ModelShelf& shelf, EventHub& events, Trainer& trainer) : shelf_(shelf), events_(events), trainer_(trainer) {}

  void look() {
    follow_training();
    if (!shelf_.scan() && !background_changed_) return;
    background_changed_ = false;
    events_.publish("models", "");  // each listener gets it in its language
    for (const ShelfModel& m : shelf_.models()) report(m);
  }

 private:
  // What becomes of the training that the server has started.
  void follow_training() {
    BackgroundTraining now = shelf_.background();
    if (now.state != BackgroundTraining::State::training || trainer_.running()) return;
    now.state = trainer_.failed() ? BackgroundTraining::State::failed : BackgroundTraining::State::done;
    if (trainer_.failed()) now.error = why_it_failed(now.name);
    shelf_.set_background(std::move(now));
    background_changed_ = true;
  }

  Text why_it_failed(const std::string& name) const {
    const std::string words = trainer_.last_words();
    if (!words.empty()) return tr("the training of {name} failed: {reason}", "name"_a = name, "reason"_a = words);
    if (trainer_.signal() != 0)
      return tr("the training of {name} was ended from outside: {signal}", "name"_a = name,
                "signal"_a = ::strsignal(trainer_.signal()));
    return tr("the training of {name} failed", "name"_a = name);
  }

  void report(const ShelfModel& m) {
    const std::string line = last_line(m.folder + "/metrics.jsonl");
    std::string& before = lines_[m.id];
    if (line.empty() || line == before) return;
    const bool first = before.empty();
    before = line;
    if (first && m.state != ModelState::training) return;
    const Json row = Json::parse(line, nullptr, false);
    events_.publish(
        "progress",
        dumped({{"id", m.id}, {"done", m.done}, {"line", m.name + " " + std::to_string(m.run ? m.run->epochs : 0)}}));
    if (row.is_object()) events_.publish("metrics", dumped({{"id", m.id}, {"row", row}}));
  }

  static std::string last_line(const std::string& path) {
    std::ifstream file(path, std::ios::ate);
    if (!file) return "";
    const auto size = static_cast<std::streamoff>(file.tellg());
    file.seekg(std::max<std::streamoff>(0, size - 4096));
    std::string line, last;
    while (std::getline(file, line))
      if (!file.eof()) last = line;
    return last;
  }

  ModelShelf& shelf_;
  EventHub& events_;
  Trainer& trainer_;
  bool background_changed_ = false;
  std::map<std::string, std::string> lines_;
};

// A model to look at, where there is none: runs/explorer, which a later start finds, or resumes.
void train_if_empty(const ServeOptions& options, ModelShelf& shelf, Trainer& trainer) {
  const std::string folder = (fs::path(options.models) / "explorer").string();
  for (const ShelfModel& m : shelf.models()) {
    const bool translates = m.run && m.run->config.task() == TaskKind::translation;
    const bool ours = m.folder == folder && m.state == ModelState::interrupted;
    if (translates && !ours) return;
  }
  if (!options.train || options.trainer.empty()) return;
  std::error_code no;
  fs::create_directories(options.models, no);
  std::vector<std::string> command = options.trainer;
  command.push_back(folder);
  trainer.start(std::move(command));
  shelf.set_background({BackgroundTraining::State::training, "explorer", {}});
}

}  // namespace

void serve(const ServeOptions& options, const std::atomic<bool>& stop,
           const std::function<void(const std::string& address)>& ready) {
  // A thread per connection would keep what it has freed in an arena of its own.
  ::mallopt(M_ARENA_MAX, kArenas);
  ModelShelf shelf(options.models);
  EventHub events;
  Api api(shelf, events);
  Handler handler(api, events);
  if (options.listen) handler.rules.token = random_token();
  // The rules depend on the port, and must not change once requests are let in.
  const std::unique_ptr<HttpServer> server = open_server(options);
  const std::string port = ":" + std::to_string(server->port());
  const std::string address = options.listen.value_or("127.0.0.1");
  handler.rules.hosts = {"127.0.0.1" + port, "localhost" + port};
  if (options.listen) handler.rules.hosts.push_back(address + port);
  if (address == "0.0.0.0") handler.rules.hosts.clear();  // any of the machine's names, together with the token
  shelf.scan();
  Trainer trainer;
  train_if_empty(options, shelf, trainer);
  Watch watch(shelf, events, trainer);
  require(server->begin(handler), "cannot start the server: the system gives no more threads");
  ready("http://" + address + port + "/" + (options.listen ? "?token=" + handler.rules.token : ""));
  for (int tenths = 0; !stop; ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (tenths % 10 == 9) watch.look();
    if (tenths % 100 == 99) ::malloc_trim(0);
  }
  api.stop();
  events.close();
}

}  // namespace qkv::serve
