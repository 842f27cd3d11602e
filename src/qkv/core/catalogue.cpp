// Reading gettext's .po format.
#include "qkv/core/catalogue.h"

#include <mutex>
#include <unordered_map>

#include "qkv/core/check.h"

namespace qkv {
namespace {

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using Catalogue = std::unordered_map<std::string, std::string, Hash, std::equal_to<>>;

struct Chinese {
  std::mutex mutex;
  std::vector<std::string> unread;  // until the first sentence is asked for: most commands need none
  Catalogue sentences;
};

Chinese& chinese() {
  static Chinese chinese;
  return chinese;
}

// Appends the content of a quoted string: "a \"b\"\n".
void append_quoted(std::string& out, std::string_view quoted, int64_t line) {
  check(quoted.size() >= 2 && quoted.front() == '"' && quoted.back() == '"', "[read_po] line ", line,
        ": expected a string in quotes");
  quoted = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    check(++i < quoted.size(), "[read_po] line ", line, ": it ends in a backslash");
    const char c = quoted[i];
    check(c == 'n' || c == 't' || c == '"' || c == '\\', "[read_po] line ", line, ": unknown escape \\", c);
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
}

}  // namespace

std::vector<CatalogueEntry> read_po(std::string_view file) {
  std::vector<CatalogueEntry> entries;
  bool fuzzy = false;
  std::string* open = nullptr;  // what a line that is only a string continues
  for (int64_t line = 1; !file.empty(); ++line) {
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view rest = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (rest.empty() || rest[0] == '#') {
      open = nullptr;
      if (rest.starts_with("#,") && rest.find("fuzzy") != rest.npos) fuzzy = true;
      continue;
    }
    if (rest.starts_with("msgid ")) {
      entries.push_back({.english = {}, .translation = {}, .fuzzy = fuzzy});
      fuzzy = false;
      open = &entries.back().english;
      rest.remove_prefix(6);
    } else if (rest.starts_with("msgstr ")) {
      check(!entries.empty(), "[read_po] line ", line, ": a msgstr without msgid");
      open = &entries.back().translation;
      rest.remove_prefix(7);
    }
    check(open != nullptr && rest[0] == '"', "[read_po] line ", line, ": expected msgid, msgstr or a string, got ",
          rest);
    append_quoted(*open, rest, line);
  }
  std::erase_if(entries, [](const CatalogueEntry& entry) { return entry.english.empty(); });
  return entries;
}

void add_catalogue(Language language, std::string po) {
  if (language == Language::en) return;
  const std::lock_guard lock(chinese().mutex);
  chinese().unread.push_back(std::move(po));
}

std::string_view translation(std::string_view english, Language language) {
  if (language == Language::en) return english;
  Chinese& known = chinese();
  const std::lock_guard lock(known.mutex);
  for (const std::string& po : known.unread)
    for (CatalogueEntry& entry : read_po(po))
      if (!entry.fuzzy && !entry.translation.empty())
        known.sentences.insert_or_assign(std::move(entry.english), std::move(entry.translation));
  known.unread.clear();
  const auto found = known.sentences.find(english);
  return found == known.sentences.end() ? english : std::string_view(found->second);
}

}  // namespace qkv
