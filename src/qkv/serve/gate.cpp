// Host, Origin, token, method, type and size, in that order.
#include "qkv/serve/gate.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace qkv::serve {
namespace {

std::string header(const HttpRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

// Takes the same time wherever the first difference is.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned char different = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different =
        static_cast<unsigned char>(different | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return different == 0;
}

bool has_token(const HttpRequest& request, const std::string& token) {
  if (same_secret(header(request, "authorization"), "Bearer " + token)) return true;
  const std::string query = "&" + request.query + "&";
  const size_t begin = query.find("&token=");
  if (begin == query.npos) return false;
  const size_t first = begin + 7;
  return same_secret(query.substr(first, query.find('&', first) - first), token);
}

}  // namespace

HttpAnswer error_answer(int status, const std::string& line, const std::string& hint) {
  nlohmann::ordered_json out = {{"error", line}};
  if (!hint.empty()) out["hint"] = hint;
  return {status,
          {{"Content-Type", "application/json"}},
          out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

std::optional<HttpAnswer> refused(const HttpRequest& request, const GateRules& rules) {
  const std::string host = header(request, "host"), origin = header(request, "origin");
  if (!rules.hosts.empty() && std::ranges::find(rules.hosts, host) == rules.hosts.end())
    return error_answer(403, "this server does not answer to the host \"" + host.substr(0, 80) + "\"");
  if (!origin.empty() && origin != "http://" + host) return error_answer(403, "requests from other pages are refused");
  if (!rules.token.empty() && !has_token(request, rules.token))
    return error_answer(401, "the token is missing or wrong", "open the address that qkv serve printed");
  if (request.method != "GET" && request.method != "POST" && request.method != "HEAD")
    return error_answer(405, "only GET and POST are answered");
  if (request.method != "POST") return {};
  std::string type = header(request, "content-type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  if (type != "application/json") return error_answer(415, "POST needs the content type application/json");
  const std::string length = header(request, "content-length");
  const bool digits = length.find_first_not_of("0123456789") == length.npos;
  if (!length.empty() && (!digits || length.size() > 9 || std::stoull(length) > rules.body_bytes))
    return error_answer(413, "the request has " + length.substr(0, 20) + " bytes; at most " +
                                 std::to_string(rules.body_bytes) + " are accepted");
  return {};
}

void harden(HttpAnswer& answer) {
  answer.headers.emplace("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  answer.headers.emplace("X-Content-Type-Options", "nosniff");
  answer.headers.emplace("X-Frame-Options", "DENY");
  answer.headers.emplace("Referrer-Policy", "no-referrer");
  answer.headers.emplace("Cross-Origin-Resource-Policy", "same-origin");
  answer.headers.emplace("Cross-Origin-Opener-Policy", "same-origin");
  answer.headers.emplace("Cache-Control", "no-store");
}

}  // namespace qkv::serve
