// Reading YAML with yaml-cpp.
#include "qkv/io/yaml_events.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "qkv/core/check.h"

namespace qkv {
namespace {

class Handler : public YAML::EventHandler {
 public:
  explicit Handler(YamlEvents& events) : events_(events) {}

  void OnDocumentStart(const YAML::Mark& mark) override { events_.begin(mark.line + 1); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { events_.scalar(mark.line + 1, nullptr); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) override {
    events_.scalar(mark.line + 1, &value);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { events_.alias(mark.line + 1); }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    events_.list(mark.line + 1);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    events_.begin_table(mark.line + 1);
  }
  void OnMapEnd() override { events_.end_table(); }

 private:
  YamlEvents& events_;
};

}  // namespace

void read_yaml(const std::string& yaml, const std::string& name, YamlEvents& events) {
  Handler handler(events);
  try {
    std::istringstream text(yaml);
    YAML::Parser parser(text);
    // yaml-cpp produces empty documents endlessly from a stray comma: the second document ends the reading.
    while (parser.HandleNextDocument(handler)) continue;
  } catch (const YAML::Exception& e) {
    refuse("{where}: not YAML: {reason}", "where"_a = text(name, ":", e.mark.line + 1), "reason"_a = e.msg);
  }
}

}  // namespace qkv
