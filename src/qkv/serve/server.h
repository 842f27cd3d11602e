// qkv serve: the API, the page and the events behind HTTP, and the small model that is trained if there is none.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::serve {

struct ServeOptions {
  std::string models = "runs";
  std::optional<uint16_t> port;       // absent: the first free one from kFirstPort on
  std::optional<std::string> listen;  // another address than 127.0.0.1; requests then need a token
  std::vector<std::string> trainer;   // the program and arguments that train a small model; its folder is appended
  bool train = true;                  // whether to do so where there is no translation model
};

inline constexpr uint16_t kFirstPort = 7800;
inline constexpr int kPortsTried = 20;

/// Serves until `stop` is set. `ready` gets the address to open, with its token if there is one.
void serve(const ServeOptions& options, const std::atomic<bool>& stop,
           const std::function<void(const std::string& address)>& ready);

}  // namespace qkv::serve
