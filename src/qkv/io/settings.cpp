// YAML in and out. yaml-cpp accepts repeated keys, anchors and numbers in octal; we do not.
#include "qkv/io/settings.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/core/suggest.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

constexpr const char* kTruth = "BOOL";  // the value name of what is true or false

[[noreturn]] void refuse(const std::string& where, const std::string& value, const std::string& expected) {
  throw Error(text(where, ": got \"", value, "\", expected ", expected));
}

std::string shortest(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// A scalar that YAML would take for something else, or that begins or ends oddly, stands in quotes.
std::string yaml_scalar(const std::string& text) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '/' || c == '.' || c == '-'; };
  const bool is_null = text == "null" || text == "Null" || text == "NULL";
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain) && text[0] != '-' && text[0] != '.' && !std::isdigit(text[0]) && !is_null)
    return text;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    else out += c;
  }
  return out + "\"";
}

std::string at_line(const std::string& name, const YAML::Mark& mark) { return text(name, ":", mark.line + 1); }

// Takes the events of one document, block by block. What is no table of blocks of single values is refused where it begins, so that nothing
// is kept of lists, aliases and nests.
class Reader : public YAML::EventHandler {
 public:
  struct Value {
    const Setting* setting;
    std::string value, where;
  };

  Reader(const std::vector<Setting>& settings, const std::string& name) : settings_(settings), name_(name) {}
  const std::vector<Value>& values() const { return values_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    check(!started_, at_line(name_, mark), ": something follows the settings, expected one YAML document of blocks");
    started_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { word(mark, nullptr); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) override { word(mark, &value); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { fail(at_line(name_, mark), ": a setting is no alias, expected its value"); }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { refuse_nest(mark); }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    if (depth_ == 2 || (depth_ == 1 && !has_block_)) refuse_nest(mark);
    ++depth_;
  }
  void OnMapEnd() override {
    if (--depth_ == 1) has_block_ = false;
  }

 private:
  // A key or a value, null where there is none.
  void word(const YAML::Mark& mark, const std::string* value) {
    if (depth_ == 0) {
      check(value == nullptr, name_, ": expected blocks of \"key: value\" lines");
    } else if (depth_ == 1 && !has_block_) {
      check(value != nullptr, at_line(name_, mark), ": the name of a block must be a word");
      open_block(*value, at_line(name_, mark));
    } else if (depth_ == 1) {
      check(value == nullptr, where_, ": the block \"", block_, "\" must hold \"key: value\" lines");
      has_block_ = false;
    } else if (setting_ == nullptr) {
      check(value != nullptr, at_line(name_, mark), ": a key must be a word");
      open_key(*value, at_line(name_, mark));
    } else {
      values_.push_back({setting_, value ? *value : std::string(), text(where_, ": ", setting_->name())});
      setting_ = nullptr;
    }
  }

  [[noreturn]] void refuse_nest(const YAML::Mark& mark) const {
    if (depth_ == 0) fail(name_, ": expected blocks of \"key: value\" lines");
    if (depth_ == 1 && !has_block_) fail(at_line(name_, mark), ": the name of a block must be a word");
    if (depth_ == 1) fail(where_, ": the block \"", block_, "\" must hold \"key: value\" lines");
    if (setting_ == nullptr) fail(at_line(name_, mark), ": a key must be a word");
    fail(where_, ": \"", setting_->name(), "\" must have one value");
  }

  void open_block(const std::string& block, const std::string& where) {
    std::vector<std::string> blocks;
    for (const Setting& s : settings_)
      if (std::find(blocks.begin(), blocks.end(), s.block) == blocks.end()) blocks.push_back(s.block);
    if (std::find(blocks.begin(), blocks.end(), block) == blocks.end())
      throw Error(text(where, ": unknown block \"", block, "\""), did_you_mean(block, blocks));
    check(seen_.insert(block).second, where, ": the block \"", block, "\" stands here twice");
    block_ = block, where_ = where, has_block_ = true;
  }

  void open_key(const std::string& key, const std::string& where) {
    const std::string full = block_ + "." + key;
    const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.name() == full; });
    if (found == settings_.end()) {
      std::vector<std::string> known;
      for (const Setting& s : settings_)
        if (s.block == block_) known.push_back(s.key);
      throw Error(text(where, ": unknown key \"", key, "\" in the block \"", block_, "\""), did_you_mean(key, known));
    }
    check(seen_.insert(full).second, where, ": the key \"", full, "\" stands here twice");
    setting_ = &*found, where_ = where;
  }

  const std::vector<Setting>& settings_;
  const std::string& name_;
  std::vector<Value> values_;
  std::set<std::string> seen_;
  bool started_ = false, has_block_ = false;  // a block's name was read, and now its lines follow
  int depth_ = 0;                             // 1 among the blocks, 2 within one
  std::string block_, where_;
  const Setting* setting_ = nullptr;  // whose value comes next
};

}  // namespace

std::string Setting::flag() const {
  std::string out = "--" + key;
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

void Settings::add(Setting setting) { settings_.push_back(std::move(setting)); }

void Settings::add(const std::string& block, const std::string& key, const Text& help, int64_t& value, int64_t low, int64_t high) {
  add({block, key, help, "N", {},
       [&value, low, high](const std::string& v, const std::string& where) {
         const auto read = parse_whole_number(v, low, high);
         if (!read) refuse(where, v, expected_whole_number(low, high));
         value = *read;
       },
       [&value] { return std::to_string(value); }});
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, double& value, double low, double high) {
  add({block, key, help, "X", {},
       [&value, low, high](const std::string& v, const std::string& where) {
         const auto read = parse_number(v, low, high);
         if (!read) refuse(where, v, expected_number(low, high));
         value = *read;
       },
       [&value] { return shortest(value); }});
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, bool& value) {
  add({block, key, help, kTruth, {"true", "false"},
       [&value](const std::string& v, const std::string& where) {
         if (v != "true" && v != "false") refuse(where, v, "true or false");
         value = v == "true";
       },
       [&value] { return value ? "true" : "false"; }});
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::string& value, const std::string& value_name) {
  add({block, key, help, value_name, {}, [&value](const std::string& v, const std::string&) { value = v; }, [&value] { return yaml_scalar(value); }});
}

void Settings::add_choice(const std::string& block, const std::string& key, const Text& help, const std::vector<std::string>& words,
                          std::function<void(size_t)> set, std::function<std::string()> get) {
  add({block, key, help, "TEXT", words,
       [words, set = std::move(set)](const std::string& v, const std::string& where) {
         const auto found = std::find(words.begin(), words.end(), v);
         if (found == words.end()) refuse_word(where, v, words);
         set(static_cast<size_t>(found - words.begin()));
       },
       std::move(get)});
}

const Setting& Settings::find(const std::string& name) const {
  for (const Setting& s : settings_)
    if (s.name() == name) return s;
  fail("there is no setting \"", name, "\"");
}

void Settings::read(const std::string& path) {
  const InputFile file(path);
  check(file.size() <= limits::kSettingsBytes, path, ": has ", grouped(file.size()), " bytes; a configuration has at most ",
        grouped(limits::kSettingsBytes));
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  parse(content, path);
}

void Settings::parse(const std::string& yaml, const std::string& name) {
  check(yaml.size() <= limits::kSettingsBytes, name, ": has ", grouped(yaml.size()), " bytes; a configuration has at most ",
        grouped(limits::kSettingsBytes));
  Reader reader(settings_, name);
  try {
    std::istringstream text(yaml);
    YAML::Parser parser(text);
    // yaml-cpp makes empty documents for ever out of a comma that it cannot place: the second one ends the reading.
    while (parser.HandleNextDocument(reader)) continue;
  } catch (const YAML::Exception& e) {
    fail(at_line(name, e.mark), ": not YAML: ", e.msg);
  }
  // All of it is checked before any of it counts.
  std::vector<std::string> before;
  for (const Setting& s : settings_) before.push_back(s.get());
  try {
    for (const Reader::Value& v : reader.values()) v.setting->set(v.value, v.where);
  } catch (...) {
    for (size_t i = 0; i < settings_.size(); ++i) {
      const YAML::Node old = YAML::Load(before[i]);
      settings_[i].set(old.IsScalar() ? old.Scalar() : std::string(), "");
    }
    throw;
  }
}

std::string Settings::dump() const {
  std::string out, block;
  for (const Setting& s : settings_) {
    if (s.block != block) out += text(block.empty() ? "" : "\n", s.block, ":\n");
    block = s.block;
    std::string line = text("  ", s.key, ": ", s.get());
    if (line.size() < 34) line.resize(34, ' ');
    const bool worded = !s.choices.empty() && s.value_name != kTruth;
    out += text(line, "  # ", s.help.en, worded ? " (one of " + listed(s.choices) + ")" : "", "\n");
  }
  return out;
}

}  // namespace qkv
