// Host, Origin, token, method, type and size, in that order.
#include "qkv/serve/gate.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

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

// The value of a key in "a=1&b=2", as it was sent.
std::optional<std::string> in_query(const HttpRequest& request, const std::string& key) {
  const std::string query = "&" + request.query + "&", before = "&" + key + "=";
  const size_t begin = query.find(before);
  if (begin == query.npos) return {};
  const size_t first = begin + before.size();
  return query.substr(first, query.find('&', first) - first);
}

std::string content_type(const HttpRequest& request) {
  std::string type = header(request, "content-type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  return type;
}

bool has_token(const HttpRequest& request, const std::string& token) {
  if (same_secret(header(request, "authorization"), "Bearer " + token)) return true;
  const auto given = in_query(request, "token");
  return given && same_secret(*given, token);
}

}  // namespace

HttpAnswer error_answer(int status, const Text& line, Language language, const Text& hint) {
  nlohmann::ordered_json out = {{"error", line.in(language)}};
  if (!hint.empty()) out["hint"] = hint.in(language);
  return {status,
          {{"Content-Type", "application/json"}},
          out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

Language asked_language(const HttpRequest& request) {
  if (const auto word = in_query(request, "lang"); word == "zh" || word == "en")
    return word == "zh" ? Language::zh : Language::en;
  // "zh-CN,zh;q=0.9,en;q=0.8": the one with the largest q, the earlier one among equals.
  std::istringstream list(header(request, "accept-language"));
  Language best = Language::en;
  double most = 0;
  for (std::string item; std::getline(list, item, ',');) {
    item.erase(0, item.find_first_not_of(' '));
    const std::string tag = item.substr(0, item.find_first_of("-;"));
    const size_t weight = item.find("q=");
    const double q = weight == item.npos ? 1 : std::strtod(item.c_str() + weight + 2, nullptr);
    if ((tag != "zh" && tag != "en") || !(q > most)) continue;
    most = q;
    best = tag == "zh" ? Language::zh : Language::en;
  }
  return best;
}

// A browser says where a form comes from, so that no page can send one; a program does not.
bool is_form(const HttpRequest& request) {
  return request.path == "/translate" && content_type(request) == "application/x-www-form-urlencoded" &&
         header(request, "origin").empty() && header(request, "sec-fetch-site").empty();
}

HttpAnswer too_large(const HttpRequest& request, size_t most) {
  return error_answer(413, tr("the request is too large: at most {most} bytes are accepted", "most"_a = most),
                      asked_language(request));
}

std::optional<HttpAnswer> refused(const HttpRequest& request, const GateRules& rules) {
  const Language language = asked_language(request);
  const std::string host = header(request, "host"), origin = header(request, "origin");
  if (!rules.hosts.empty() && std::ranges::find(rules.hosts, host) == rules.hosts.end())
    return error_answer(403, tr("this server does not answer to the host \"{host}\"", "host"_a = host.substr(0, 80)),
                        language);
  if (!origin.empty() && origin != "http://" + host)
    return error_answer(403, tr("requests from other pages are refused"), language);
  if (!rules.token.empty() && !has_token(request, rules.token))
    return error_answer(401, tr("the token is missing or wrong"), language,
                        tr("open the address that qkv serve printed"));
  if (request.method != "GET" && request.method != "POST" && request.method != "HEAD")
    return error_answer(405, tr("only GET and POST are answered"), language);
  if (request.method != "POST") return {};
  if (content_type(request) != "application/json" && !is_form(request))
    return error_answer(415, tr("POST needs the content type application/json"), language);
  const std::string length = header(request, "content-length");
  const bool digits = length.find_first_not_of("0123456789") == length.npos;
  if (!length.empty() && (!digits || length.size() > 9 || std::stoull(length) > rules.body_bytes))
    return too_large(request, rules.body_bytes);
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
