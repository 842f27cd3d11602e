// Settings from text and back. YAML has repeated keys, anchors and nested tables; settings do not.
#include "qkv/io/settings.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/core/suggest.h"
#include "qkv/io/file.h"
#include "qkv/io/yaml_events.h"

namespace qkv {
namespace {

constexpr const char* kTruth = "BOOL";  // the value name of a boolean

[[noreturn]] void refuse_value(const std::string& where, const std::string& value, const Text& expected) {
  refuse("{where}: got \"{value}\", expected {expected}", "where"_a = where, "value"_a = value,
         "expected"_a = expected);
}

template <class Number>
std::string shortest(Number value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// Quotes a scalar that YAML would take for something else, or that begins or ends oddly.
std::string yaml_scalar(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '/' || c == '.' || c == '-';
  };
  const bool is_null = text == "null" || text == "Null" || text == "NULL";
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain) && text[0] != '-' && text[0] != '.' &&
      !std::isdigit(text[0]) && !is_null)
    return text;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    else
      out += c;
  }
  return out + "\"";
}

std::string at_line(const std::string& name, int64_t line) { return text(name, ":", line); }

}  // namespace

// Handles the events of one document, block by block. Anything but a table of blocks of single values is refused where
// it begins, so lists, aliases and nested tables are never stored.
class SettingsReader : public YamlEvents {
 public:
  struct Value {
    std::string name, value, where;
  };

  /// Without settings every key is accepted.
  SettingsReader(const Settings* settings, const std::string& name) : settings_(settings), name_(name) {}
  const std::vector<Value>& values() const { return values_; }

  void read(const std::string& yaml) {
    require(yaml.size() <= limits::kSettingsBytes, "{name}: has {size} bytes; a configuration has at most {most}",
            "name"_a = name_, "size"_a = grouped(yaml.size()), "most"_a = grouped(limits::kSettingsBytes));
    read_yaml(yaml, name_, *this);
  }

  void begin(int64_t line) override {
    require(!started_, "{where}: something follows the settings, expected one YAML document of blocks",
            "where"_a = at_line(name_, line));
    started_ = true;
  }
  void scalar(int64_t line, const std::string* value) override { word(line, value); }
  void alias(int64_t line) override {
    refuse("{where}: a setting cannot be an alias, expected its value", "where"_a = at_line(name_, line));
  }
  void list(int64_t line) override { refuse_nest(line); }
  void begin_table(int64_t line) override {
    if (depth_ == 2 || (depth_ == 1 && !has_block_)) refuse_nest(line);
    ++depth_;
  }
  void end_table() override {
    if (--depth_ == 1) has_block_ = false;
  }

 private:
  // A key or a value; null if there is none.
  void word(int64_t line, const std::string* value) {
    if (depth_ == 0) {
      require(value == nullptr, "{name}: expected blocks of \"key: value\" lines", "name"_a = name_);
    } else if (depth_ == 1 && !has_block_) {
      require(value != nullptr, "{where}: the name of a block must be a word", "where"_a = at_line(name_, line));
      open_block(*value, at_line(name_, line));
    } else if (depth_ == 1) {
      require(value == nullptr, "{where}: the block \"{block}\" must hold \"key: value\" lines", "where"_a = where_,
              "block"_a = block_);
      has_block_ = false;
    } else if (key_.empty()) {
      require(value != nullptr, "{where}: a key must be a word", "where"_a = at_line(name_, line));
      open_key(*value, at_line(name_, line));
    } else {
      take(value ? *value : std::string());
      key_.clear();
    }
  }

  [[noreturn]] void refuse_nest(int64_t line) const {
    if (depth_ == 0) refuse("{name}: expected blocks of \"key: value\" lines", "name"_a = name_);
    if (depth_ == 1 && !has_block_)
      refuse("{where}: the name of a block must be a word", "where"_a = at_line(name_, line));
    if (depth_ == 1)
      refuse("{where}: the block \"{block}\" must hold \"key: value\" lines", "where"_a = where_, "block"_a = block_);
    if (key_.empty()) refuse("{where}: a key must be a word", "where"_a = at_line(name_, line));
    refuse("{where}: \"{key}\" must have one value", "where"_a = where_, "key"_a = key_);
  }

  void open_block(const std::string& block, const std::string& where) {
    if (settings_) {
      std::vector<std::string> blocks;
      for (const Setting& s : settings_->all())
        if (std::find(blocks.begin(), blocks.end(), s.block) == blocks.end()) blocks.push_back(s.block);
      if (std::find(blocks.begin(), blocks.end(), block) == blocks.end())
        throw Error(tr("{where}: unknown block \"{block}\"", "where"_a = where, "block"_a = block),
                    did_you_mean(block, blocks));
    }
    require(seen_.insert(block).second, "{where}: the block \"{block}\" appears twice", "where"_a = where,
            "block"_a = block);
    block_ = block;
    where_ = where;
    has_block_ = true;
  }

  void open_key(const std::string& key, const std::string& where) {
    key_ = block_ + "." + key;
    where_ = where;
    if (!settings_) return;
    if (const auto moved = settings_->moved_.find(key_); moved != settings_->moved_.end())
      key_ = moved->second.empty() ? kDropped : moved->second;
    else if (std::ranges::none_of(settings_->all(), [&](const Setting& s) { return s.name() == key_; }))
      refuse_key(key);
    require(key_ == kDropped || seen_.insert(key_).second, "{where}: the key \"{block}.{key}\" appears twice",
            "where"_a = where, "block"_a = block_, "key"_a = key);
  }

  [[noreturn]] void refuse_key(const std::string& key) const {
    std::vector<std::string> known;
    for (const Setting& s : settings_->all())
      if (s.block == block_) known.push_back(s.key);
    if (const auto why = settings_->why_not_.find(key_); why != settings_->why_not_.end())
      refuse("{where}: unknown key \"{key}\" in the block \"{block}\": {why}", "where"_a = where_, "key"_a = key,
             "block"_a = block_, "why"_a = why->second);
    throw Error(tr("{where}: unknown key \"{key}\" in the block \"{block}\"", "where"_a = where_, "key"_a = key,
                   "block"_a = block_),
                did_you_mean(key, known));
  }

  void take(std::string value) {
    if (key_ == kDropped) return;
    if (settings_)
      if (const auto newer = settings_->values_.find(key_ + "=" + value); newer != settings_->values_.end())
        value = newer->second;
    values_.push_back({key_, value, text(where_, ": ", key_)});
  }

  static constexpr const char* kDropped = "-";
  const Settings* settings_;
  const std::string& name_;
  std::vector<Value> values_;
  std::set<std::string> seen_;
  bool started_ = false, has_block_ = false;  // has_block_: a block's name was read, its lines follow
  int depth_ = 0;                             // 1 between blocks, 2 inside one
  std::string block_, where_;
  std::string key_;  // the key whose value comes next, with its block
};

void Settings::add(Setting setting) {
  const bool twice =
      std::ranges::any_of(settings_, [&](const Setting& s) { return s.key == setting.key; }) ||
      std::ranges::any_of(why_not_, [&](const auto& other) { return other.first.ends_with("." + setting.key); });
  setting.flag = text("--", twice ? setting.block + "_" : "", setting.key);
  std::ranges::replace(setting.flag, '_', '-');
  settings_.push_back(std::move(setting));
}

namespace {

std::optional<int64_t> parse_between(const std::string& v, int64_t low, int64_t high) {
  return parse_whole_number(v, low, high);
}
std::optional<double> parse_between(const std::string& v, double low, double high) {
  return parse_number(v, low, high);
}
Text expected_between(int64_t low, int64_t high) { return expected_whole_number(low, high); }
Text expected_between(double low, double high) { return expected_number(low, high); }

// A number between limits of the type it is read as.
template <class Number, class Limit>
Setting number_setting(const std::string& block, const std::string& key, const Text& help, Number& value, Limit low,
                       Limit high) {
  return {block,
          key,
          help,
          std::is_integral_v<Limit> ? "N" : "X",
          {},
          [&value, low, high](const std::string& v, const std::string& where) -> Setting::Assign {
            const auto read = parse_between(v, low, high);
            if (!read) refuse_value(where, v, expected_between(low, high));
            return [&value, read = *read] { value = static_cast<Number>(read); };
          },
          [&value] { return shortest(value); }};
}

// Numbers between blanks.
template <class Number, class Limit>
Setting list_setting(const std::string& block, const std::string& key, const Text& help, std::vector<Number>& value,
                     Limit low, Limit high) {
  return {block,
          key,
          help,
          "NUMBERS",
          {},
          [&value, low, high](const std::string& v, const std::string& where) -> Setting::Assign {
            std::vector<Number> read;
            std::istringstream words(v);
            for (std::string word; words >> word;) {
              const auto number = parse_between(word, low, high);
              if (!number) refuse_value(where, word, expected_between(low, high));
              read.push_back(static_cast<Number>(*number));
            }
            return [&value, read] { value = read; };
          },
          [&value] {
            std::string words;
            for (const Number one : value) words += (words.empty() ? "" : " ") + shortest(one);
            return value.size() == 1 ? words : yaml_scalar(words);
          }};
}

template <class Number, class Limit>
Setting open_setting(const std::string& block, const std::string& key, const Text& help, std::optional<Number>& value,
                     const Open& open, Limit low, Limit high) {
  return {block,
          key,
          help,
          std::is_integral_v<Limit> ? "N" : "X",
          {},
          [&value, open, low, high](const std::string& v, const std::string& where) -> Setting::Assign {
            if (v == open.word || (open.before && v == open.before)) return [&value] { value.reset(); };
            const auto read = parse_between(v, low, high);
            if (!read)
              refuse_value(where, v,
                           tr("{number}, or {word}", "number"_a = expected_between(low, high), "word"_a = open.word));
            return [&value, read = *read] { value = static_cast<Number>(read); };
          },
          [&value, open] { return value ? shortest(*value) : std::string(open.word); }};
}

}  // namespace

void Settings::add(const std::string& block, const std::string& key, const Text& help, int64_t& value, int64_t low,
                   int64_t high) {
  add(number_setting(block, key, help, value, low, high));
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, double& value, double low,
                   double high) {
  add(number_setting(block, key, help, value, low, high));
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, float& value, double low,
                   double high) {
  add(number_setting(block, key, help, value, low, high));
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::optional<int64_t>& value,
                   const Open& open, int64_t low, int64_t high) {
  add(open_setting(block, key, help, value, open, low, high));
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::optional<float>& value,
                   const Open& open, double low, double high) {
  add(open_setting(block, key, help, value, open, low, high));
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, bool& value) {
  add({block,
       key,
       help,
       kTruth,
       {"true", "false"},
       [&value](const std::string& v, const std::string& where) -> Setting::Assign {
         if (v != "true" && v != "false") refuse_value(where, v, tr("true or false"));
         return [&value, read = v == "true"] { value = read; };
       },
       [&value] { return value ? "true" : "false"; }});
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::string& value,
                   const std::string& value_name) {
  add({block,
       key,
       help,
       value_name,
       {},
       [&value](const std::string& v, const std::string&) -> Setting::Assign { return [&value, v] { value = v; }; },
       [&value] { return yaml_scalar(value); }});
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::vector<int32_t>& value,
                   int32_t low, int32_t high) {
  add(list_setting(block, key, help, value, int64_t{low}, int64_t{high}));
}

void Settings::add(const std::string& block, const std::string& key, const Text& help, std::vector<double>& value,
                   double low, double high) {
  add(list_setting(block, key, help, value, low, high));
}

void Settings::add_choice(const std::string& block, const std::string& key, const Text& help,
                          const std::vector<std::string>& words, std::function<void(size_t)> set,
                          std::function<std::string()> get) {
  add({block, key, help, "NAME", words,
       [words, set = std::move(set)](const std::string& v, const std::string& where) -> Setting::Assign {
         const auto found = std::find(words.begin(), words.end(), v);
         if (found == words.end()) refuse_word(where, v, words);
         return [set, i = static_cast<size_t>(found - words.begin())] { set(i); };
       },
       std::move(get)});
}

void Settings::add_fixed(const std::string& block, const std::string& key, const Text& help,
                         const std::vector<std::string>& words, const std::string& word) {
  add_choice(
      block, key, help, words,
      [=](size_t i) {
        require(words[i] == word, "{block}.{key} is {word} here and cannot become {other}", "block"_a = block,
                "key"_a = key, "word"_a = word, "other"_a = words[i]);
      },
      [word] { return word; });
}

bool Settings::has(const std::string& name) const {
  return std::ranges::find(settings_, name, &Setting::name) != settings_.end();
}

const Setting& Settings::find(const std::string& name) const {
  for (const Setting& s : settings_)
    if (s.name() == name) return s;
  if (const auto why = why_not_.find(name); why != why_not_.end())
    refuse("{name} is {why}", "name"_a = name, "why"_a = why->second);
  refuse("there is no setting \"{name}\"", "name"_a = name);
}

std::string read_settings_text(const std::string& path) {
  const InputFile file(path);
  require(file.size() <= limits::kSettingsBytes, "{path}: has {size} bytes; a configuration has at most {most}",
          "path"_a = path, "size"_a = grouped(file.size()), "most"_a = grouped(limits::kSettingsBytes));
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

std::optional<FoundSetting> find_setting(const std::string& yaml, const std::string& name, const std::string& setting) {
  SettingsReader reader(nullptr, name);
  reader.read(yaml);
  for (const SettingsReader::Value& v : reader.values())
    if (v.name == setting) return FoundSetting{v.value, v.where};
  return {};
}

void Settings::read(const std::string& path) { parse(read_settings_text(path), path); }

void Settings::parse(const std::string& yaml, const std::string& name) {
  SettingsReader reader(this, name);
  reader.read(yaml);
  std::vector<Setting::Assign> assign;  // everything is checked before anything is set
  for (const SettingsReader::Value& v : reader.values()) assign.push_back(find(v.name).parse(v.value, v.where));
  for (const Setting::Assign& one : assign) one();
}

std::string Settings::dump() const {
  std::string out, block;
  for (const Setting& s : settings_) {
    if (s.block != block) out += text(block.empty() ? "" : "\n", s.block, ":\n");
    block = s.block;
    std::string line = text("  ", s.key, ": ", s.get());
    if (line.size() < 34) line.resize(34, ' ');
    const bool worded = !s.choices.empty() && s.value_name != kTruth;
    out += text(line, "  # ", s.help.in(Language::en), worded ? " (one of " + listed(s.choices) + ")" : "", "\n");
  }
  return out;
}

}  // namespace qkv
