// YAML in and out. yaml-cpp accepts repeated keys, anchors and numbers in octal; we do not.
#include "qkv/io/settings.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/core/suggest.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;  // of a configuration file
constexpr const char* kTruth = "BOOL";    // the value name of what is true or false

[[noreturn]] void refuse(const std::string& where, const std::string& value, const std::string& expected, const std::string& hint = "") {
  throw Error(text(where, ": got \"", value, "\", expected ", expected), hint);
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

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string with_suggestion(const std::string& word, std::vector<std::string> known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? std::string() : text("did you mean \"", near, "\"?");
}

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

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::string& value,
                   const std::vector<std::string>& choices, const std::string& value_name) {
  add({block, key, help, value_name, choices,
       [&value, choices](const std::string& v, const std::string& where) {
         if (!choices.empty() && std::find(choices.begin(), choices.end(), v) == choices.end())
           refuse(where, v, "one of " + listed(choices), with_suggestion(v, choices));
         value = v;
       },
       [&value] { return yaml_scalar(value); }});
}

const Setting& Settings::find(const std::string& name) const {
  for (const Setting& s : settings_)
    if (s.name() == name) return s;
  fail("there is no setting \"", name, "\"");
}

void Settings::read(const std::string& path) {
  const InputFile file(path);
  check(file.size() <= kMostBytes, path, ": has ", grouped(file.size()), " bytes; a configuration has at most ", grouped(kMostBytes));
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  parse(content, path);
}

void Settings::parse(const std::string& yaml, const std::string& name) {
  YAML::Node root;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(yaml);
    check(documents.size() <= 1, name, ": has ", documents.size(), " YAML documents, expected one");
    if (!documents.empty()) root = documents[0];
  } catch (const YAML::Exception& e) {
    fail(at_line(name, e.mark), ": not YAML: ", e.msg);
  }
  if (root.IsNull()) return;
  check(root.IsMap(), name, ": expected blocks of \"key: value\" lines");
  std::vector<std::string> blocks;
  for (const Setting& s : settings_)
    if (std::find(blocks.begin(), blocks.end(), s.block) == blocks.end()) blocks.push_back(s.block);

  std::vector<std::pair<const Setting*, std::pair<std::string, std::string>>> values;  // what, (value, where)
  std::set<std::string> seen;
  for (const auto& entry : root) {
    check(entry.first.IsScalar(), at_line(name, entry.first.Mark()), ": the name of a block must be a word");
    const std::string block = entry.first.Scalar(), where = at_line(name, entry.first.Mark());
    if (std::find(blocks.begin(), blocks.end(), block) == blocks.end())
      throw Error(text(where, ": unknown block \"", block, "\""), with_suggestion(block, blocks));
    check(seen.insert(block).second, where, ": the block \"", block, "\" stands here twice");
    if (entry.second.IsNull()) continue;
    check(entry.second.IsMap(), where, ": the block \"", block, "\" must hold \"key: value\" lines");
    for (const auto& line : entry.second) {
      const std::string here = at_line(name, line.first.Mark());
      check(line.first.IsScalar(), here, ": a key must be a word");
      const std::string key = line.first.Scalar(), full = block + "." + key;
      const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.name() == full; });
      if (found == settings_.end()) {
        std::vector<std::string> known;
        for (const Setting& s : settings_)
          if (s.block == block) known.push_back(s.key);
        throw Error(text(here, ": unknown key \"", key, "\" in the block \"", block, "\""), with_suggestion(key, known));
      }
      check(seen.insert(full).second, here, ": the key \"", full, "\" stands here twice");
      check(line.second.IsScalar() || line.second.IsNull(), here, ": \"", full, "\" must have one value");
      values.push_back({&*found, {line.second.IsNull() ? std::string() : line.second.Scalar(), text(here, ": ", full)}});
    }
  }
  // All of it is checked before any of it counts.
  std::vector<std::string> before;
  for (const Setting& s : settings_) before.push_back(s.get());
  try {
    for (const auto& [setting, value] : values) setting->set(value.first, value.second);
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
