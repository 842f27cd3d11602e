// A YAML text as a sequence of events.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

/// Lines are counted from 1.
class YamlEvents {
 public:
  virtual ~YamlEvents() = default;
  virtual void begin(int64_t line) = 0;                             // of a document
  virtual void scalar(int64_t line, const std::string* value) = 0;  // a key or a value; null if there is none
  virtual void alias(int64_t line) = 0;
  virtual void list(int64_t line) = 0;  // its elements follow
  virtual void begin_table(int64_t line) = 0;
  virtual void end_table() = 0;
};

/// Text that is not YAML is an error that begins with `name` and the line.
void read_yaml(const std::string& yaml, const std::string& name, YamlEvents& events);

}  // namespace qkv
