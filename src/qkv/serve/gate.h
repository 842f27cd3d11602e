// Which requests are let in: a browser on some other page must not be able to talk to the server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/serve/http.h"

namespace qkv::serve {

struct GateRules {
  std::vector<std::string> hosts;  // what Host may be; empty: anything, together with a token
  std::string token;               // required if not empty
  size_t body_bytes = kMostBodyBytes;
};

/// Nothing for a request that may enter; else its refusal, in the language that it asks for.
std::optional<HttpAnswer> refused(const HttpRequest& request, const GateRules& rules);

/// `lang` of the query; else what Accept-Language prefers, if that is a language that we speak; else English.
Language asked_language(const HttpRequest& request);

/// A form of a LibreTranslate client, the only form that is let in; never from a page.
bool is_form(const HttpRequest& request);

/// The answer to a body of more than `most` bytes.
HttpAnswer too_large(const HttpRequest& request, size_t most);

/// An error as JSON.
HttpAnswer error_answer(int status, const Text& line, Language language, const Text& hint = {});

/// Adds what every answer has: nothing may be guessed, framed or loaded from elsewhere.
void harden(HttpAnswer& answer);

}  // namespace qkv::serve
