// The part of YAML that qkv itself writes: blocks of "key: value" lines, with comments and quoted values.
#include "qkv/io/yaml_events.h"

#include "qkv/core/check.h"

namespace qkv {
namespace {

class Reader {
 public:
  Reader(const std::string& yaml, const std::string& name, YamlEvents& events)
      : yaml_(yaml), name_(name), events_(events) {}

  void read() {
    for (size_t at = 0; at < yaml_.size(); ++line_) {
      const size_t end = std::min(yaml_.find('\n', at), yaml_.size());
      std::string one = yaml_.substr(at, end - at);
      if (!one.empty() && one.back() == '\r') one.pop_back();
      read_line(one);
      at = end + 1;
    }
    close_block();
    if (began_) events_.end_table();
  }

 private:
  [[noreturn]] void refuse_line() const {
    refuse("{where}: expected blocks of \"key: value\" lines", "where"_a = text(name_, ":", line_));
  }

  void read_line(const std::string& line) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line[first] == '#') return;
    const size_t colon = line.find(':', first);
    if (colon == std::string::npos || (colon + 1 < line.size() && line[colon + 1] != ' ')) refuse_line();
    if (!began_) {
      events_.begin(line_);
      events_.begin_table(line_);
      began_ = true;
    }
    const std::string key = line.substr(first, colon - first);
    const auto value = read_value(line, colon + 1);
    if (first == 0) {
      if (value) refuse_line();
      close_block();
      events_.scalar(line_, &key);
      named_ = true;
      return;
    }
    if (!named_) refuse_line();
    if (!open_) events_.begin_table(line_);
    open_ = true;
    events_.scalar(line_, &key);
    events_.scalar(line_, value ? &*value : nullptr);
  }

  // The value from there on, without a comment after it.
  std::optional<std::string> read_value(const std::string& line, size_t at) const {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    if (at == line.size() || line[at] == '#') return {};
    std::string out;
    if (line[at] != '"') {
      const size_t comment = std::min(line.find(" #", at), line.size());
      out = line.substr(at, comment - at);
      out.erase(out.find_last_not_of(' ') + 1);
      if (std::string("[{&*!|>'%@`").find(out[0]) != std::string::npos) refuse_line();
      if (out == "null" || out == "~") return {};
      return out;
    }
    for (++at; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] != '\\') {
        out += line[at];
        continue;
      }
      if (++at >= line.size()) refuse_line();
      if (line[at] == 'x' && at + 2 < line.size()) {
        out += static_cast<char>(std::stoi(line.substr(at + 1, 2), nullptr, 16));
        at += 2;
      } else {
        out += line[at];
      }
    }
    const size_t rest = at < line.size() ? line.find_first_not_of(' ', at + 1) : 0;
    if (at >= line.size() || (rest != std::string::npos && line[rest] != '#')) refuse_line();
    return out;
  }

  // A block without lines has no value.
  void close_block() {
    if (open_)
      events_.end_table();
    else if (named_)
      events_.scalar(line_, nullptr);
    open_ = named_ = false;
  }

  const std::string &yaml_, &name_;
  YamlEvents& events_;
  int64_t line_ = 1;
  bool began_ = false, named_ = false, open_ = false;
};

}  // namespace

void read_yaml(const std::string& yaml, const std::string& name, YamlEvents& events) {
  Reader(yaml, name, events).read();
}

}  // namespace qkv
