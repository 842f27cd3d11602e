// The interface between the server and the plug-in that speaks HTTP. The plug-in knows nothing else of qkv, and only
// standard types cross it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace qkv::serve {

struct HttpRequest {
  std::string method, path, query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

/// The source of a body without an end: the next piece, empty if there is none yet (asked again), or `false` at the
/// end.
using HttpStream = std::function<bool(std::string& piece)>;

struct HttpAnswer {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  std::string_view lasting = {};  // instead of a body: bytes that are there as long as the program
  HttpStream stream = nullptr;    // instead of a body
};

struct HttpHandler {
  virtual ~HttpHandler() = default;
  /// Before the body is read: a status other than 200 refuses the request.
  virtual HttpAnswer head(const HttpRequest& request) = 0;
  virtual HttpAnswer answer(const HttpRequest& request) = 0;
  /// To a body that turned out to be longer than HttpOptions::body_bytes.
  virtual HttpAnswer too_large(const HttpRequest& request) = 0;
};

inline constexpr size_t kMostBodyBytes = size_t{1} << 20;  // of a request

struct HttpOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  size_t body_bytes = kMostBodyBytes;
  size_t header_bytes = size_t{16} << 10;
  unsigned connections = 64, seconds = 20;  // seconds: for a whole request to arrive
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;  // stops it
  virtual uint16_t port() const = 0;
  /// From now on requests are answered; those that have come before wait until now. Call it once.
  virtual bool begin(HttpHandler& handler) = 0;
};

/// What the plug-in exports as "qkv_http_start": a server that has its port. Null with the system's error number if the
/// port cannot be had.
using HttpStart = HttpServer* (*)(const HttpOptions& options, int& error);

}  // namespace qkv::serve
