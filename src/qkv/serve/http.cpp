// The plug-in: libmicrohttpd with a thread per connection, and limits on everything that a client may send.
#include "qkv/serve/http.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

namespace qkv::serve {
namespace {

using Clock = std::chrono::steady_clock;

class MicroServer;

// One request on its way in.
struct Incoming {
  HttpRequest request;
  HttpAnswer refusal;  // if the status is not 200
  bool begun = false, too_large = false;
  size_t received = 0;
};

struct Streaming {
  HttpStream next;
  int socket;
  std::string rest;
};

class MicroServer : public HttpServer {
 public:
  explicit MicroServer(const HttpOptions& options) : options_(options) {}
  ~MicroServer() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    woken_.notify_all();
    if (watchdog_.joinable()) watchdog_.join();
    if (daemon_)
      MHD_stop_daemon(daemon_);  // closes the socket too
    else if (socket_ >= 0)
      ::close(socket_);
  }

  bool open(int& error) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(options_.port);
    if (::inet_pton(AF_INET, options_.address.c_str(), &here.sin_addr) != 1) {
      error = EINVAL;
      return false;
    }
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    socklen_t size = sizeof here;
    const bool listens = socket_ >= 0 && ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                         ::bind(socket_, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0 &&
                         ::listen(socket_, SOMAXCONN) == 0 &&
                         ::getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size) == 0;
    if (!listens) {
      error = errno;
      return false;
    }
    port_ = ntohs(here.sin_port);
    return true;
  }

  bool begin(HttpHandler& handler) override {
    handler_ = &handler;
    daemon_ = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, port_, nullptr, nullptr,
                               on_request, this, MHD_OPTION_LISTEN_SOCKET, socket_, MHD_OPTION_NOTIFY_COMPLETED,
                               on_completed, this, MHD_OPTION_NOTIFY_CONNECTION, on_connection, this,
                               MHD_OPTION_CONNECTION_LIMIT, options_.connections, MHD_OPTION_CONNECTION_TIMEOUT,
                               options_.seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, options_.header_bytes + 8192,
                               MHD_OPTION_EXTERNAL_LOGGER, on_log, nullptr, MHD_OPTION_END);
    if (!daemon_) return false;
    watchdog_ = std::thread([this] { watch(); });
    return true;
  }

  uint16_t port() const override { return port_; }

 private:
  // Connections that have sent only a part of a request for too long are cut: a sender of one byte per second would
  // never be idle.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!woken_.wait_for(lock, std::chrono::seconds(1), [this] { return ending_; })) {
      const auto now = Clock::now();
      for (auto& [connection, waiting] : waiting_)
        if (waiting.since && now - *waiting.since > std::chrono::seconds(options_.seconds))
          ::shutdown(waiting.socket, SHUT_RDWR);
    }
  }

  struct Waiting {
    int socket = -1;
    std::optional<Clock::time_point> since;
  };

  void waits(MHD_Connection* connection, bool is_waiting) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(connection);
    if (found == waiting_.end()) return;
    if (is_waiting)
      found->second.since = Clock::now();
    else
      found->second.since.reset();
  }

  static void on_log(void*, const char*, va_list) {}  // a client's mistakes are not our user's

  static void on_connection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
    auto& server = *static_cast<MicroServer*>(self);
    const std::lock_guard lock(server.mutex_);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      server.waiting_.erase(connection);
      return;
    }
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info) server.waiting_[connection] = {info->connect_fd, Clock::now()};
  }

  static void on_completed(void* self, MHD_Connection* connection, void** memory, MHD_RequestTerminationCode) {
    delete static_cast<Incoming*>(*memory);
    *memory = nullptr;
    static_cast<MicroServer*>(self)->waits(connection, true);
  }

  static MHD_Result add_header(void* request, MHD_ValueKind, const char* key, const char* value) {
    std::string name = key;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string& all = static_cast<HttpRequest*>(request)->headers[name];
    all += (all.empty() ? "" : ", ") + std::string(value ? value : "");
    return MHD_YES;
  }

  static MHD_Result add_argument(void* request, MHD_ValueKind, const char* key, const char* value) {
    std::string& query = static_cast<HttpRequest*>(request)->query;
    query += (query.empty() ? "" : "&") + std::string(key) + "=" + (value ? value : "");
    return MHD_YES;
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url, const char* method, const char*,
                               const char* data, size_t* size, void** memory) {
    auto& server = *static_cast<MicroServer*>(self);
    try {
      return server.take(connection, url, method, data, size, memory);
    } catch (const std::exception&) {
      return MHD_NO;  // out of memory: this connection is closed, the server lives on
    }
  }

  MHD_Result take(MHD_Connection* connection, const char* url, const char* method, const char* data, size_t* size,
                  void** memory) {
    if (!*memory) {
      auto incoming = std::make_unique<Incoming>();
      incoming->request.method = method;
      incoming->request.path = url;
      MHD_get_connection_values(connection, MHD_HEADER_KIND, add_header, &incoming->request);
      MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, &incoming->request);
      incoming->refusal = handler_->head(incoming->request);
      Incoming* kept = incoming.release();
      *memory = kept;
      // A body that was announced is not read if the request is refused: the connection is closed after the answer.
      if (kept->refusal.status != 200 && kept->request.headers.contains("content-length"))
        return send(connection, std::move(kept->refusal));
      return MHD_YES;
    }
    Incoming& in = *static_cast<Incoming*>(*memory);
    if (*size > 0) {
      in.received += *size;
      if (in.received > 16 * options_.body_bytes) return MHD_NO;
      if (in.received > options_.body_bytes)
        in.too_large = true;
      else if (in.refusal.status == 200)
        in.request.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    waits(connection, false);
    if (in.refusal.status != 200) return send(connection, std::move(in.refusal));
    if (in.too_large) return send(connection, handler_->too_large(in.request));
    return send(connection, handler_->answer(in.request));
  }

  // A listener says nothing more: the end of what it sends is the end of it.
  static bool has_hung_up(int socket) {
    char byte = 0;
    const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  static ssize_t read_stream(void* memory, uint64_t, char* out, size_t most) {
    auto& streaming = *static_cast<Streaming*>(memory);
    try {
      while (streaming.rest.empty()) {
        if (!streaming.next(streaming.rest)) return MHD_CONTENT_READER_END_OF_STREAM;
        if (streaming.rest.empty() && has_hung_up(streaming.socket)) return MHD_CONTENT_READER_END_WITH_ERROR;
      }
    } catch (const std::exception&) {
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    const size_t count = std::min(most, streaming.rest.size());
    std::memcpy(out, streaming.rest.data(), count);
    streaming.rest.erase(0, count);
    return static_cast<ssize_t>(count);
  }
  static void free_stream(void* memory) { delete static_cast<Streaming*>(memory); }

  MHD_Result send(MHD_Connection* connection, HttpAnswer answer) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const bool lasts = !answer.lasting.empty();
    const std::string_view bytes = lasts ? answer.lasting : std::string_view(answer.body);
    MHD_Response* response =
        answer.stream ? MHD_create_response_from_callback(
                            MHD_SIZE_UNKNOWN, 4096, read_stream,
                            new Streaming{std::move(answer.stream), info ? info->connect_fd : -1, {}}, free_stream)
                      : MHD_create_response_from_buffer(bytes.size(), const_cast<char*>(bytes.data()),
                                                        lasts ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    for (const auto& [name, value] : answer.headers) MHD_add_response_header(response, name.c_str(), value.c_str());
    const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return queued;
  }

  const HttpOptions options_;
  HttpHandler* handler_ = nullptr;
  int socket_ = -1;
  uint16_t port_ = 0;
  MHD_Daemon* daemon_ = nullptr;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::map<MHD_Connection*, Waiting> waiting_;
  bool ending_ = false;
  std::thread watchdog_;
};

}  // namespace
}  // namespace qkv::serve

extern "C" __attribute__((visibility("default"))) qkv::serve::HttpServer* qkv_http_start(
    const qkv::serve::HttpOptions& options, int& error) {
  auto server = std::make_unique<qkv::serve::MicroServer>(options);
  return server->open(error) ? server.release() : nullptr;
}
