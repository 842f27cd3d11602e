#include "qkv/serve/examples.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "qkv/data/en_fr.h"

namespace qkv::serve {
namespace {

constexpr size_t kMost = 6, kLinesRead = 2000;
constexpr int kFewestWords = 5, kMostWords = 14;

int words_in(const std::string& text) {
  std::istringstream words(text);
  int count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

// "multi30k/train.en" was found where the training ran; its folder is often that, or runs/NAME below it.
std::ifstream opened(const std::string& path, const std::string& folder) {
  const std::filesystem::path run(folder);
  for (const auto& place : {std::filesystem::path(), run / "..", run / "../.."})
    if (std::ifstream file(place / path); file) return file;
  return {};
}

// The first lines of a file that have a fair length, or the first ones at all in a file of very short lines. Compressed
// files are not opened for this.
std::vector<std::string> first_lines(const std::string& path, const std::string& folder,
                                     const std::function<std::string(const std::string&)>& text_of) {
  std::vector<std::string> fair, any;
  if (path.empty() || path.ends_with(".gz")) return {};
  std::ifstream file = opened(path, folder);
  std::string line;
  for (size_t n = 0; n < kLinesRead && fair.size() < kMost && std::getline(file, line); ++n) {
    if (line.ends_with('\r')) line.pop_back();
    const std::string text = text_of(line);
    const int words = words_in(text);
    const bool is_fair = kFewestWords <= words && words <= kMostWords;
    for (auto* list : {&fair, &any})
      if ((list == &any || is_fair) && words > 0 && list->size() < kMost &&
          std::ranges::find(*list, text) == list->end())
        list->push_back(text);
  }
  return fair.empty() ? any : fair;
}

std::vector<std::string> first_of(std::vector<std::string> some, std::vector<std::string> others) {
  return some.empty() ? others : some;
}

}  // namespace

std::vector<std::string> example_texts(const TranslationConfig& config, const std::string& folder) {
  const TranslationDataConfig& data = config.data;
  if (data.built_in()) {
    static const auto kPairs = en_fr_split(EnFrOptions{.size = 4000}).test;
    std::vector<std::string> out;
    for (size_t i = 0; i < std::min(kMost, kPairs.size()); ++i)
      out.push_back(data.reverse ? kPairs[i].target : kPairs[i].source);
    return out;
  }
  const auto column = [&](const std::string& line) {
    const size_t tab = line.find('\t');
    if (tab == line.npos) return std::string();
    return data.reverse ? line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1) : line.substr(0, tab);
  };
  const auto whole = [](const std::string& line) { return line; };
  if (!data.pairs.empty())
    return first_of(first_lines(data.valid_pairs, folder, column), first_lines(data.pairs, folder, column));
  return first_of(first_lines(data.reverse ? data.valid_target : data.valid_source, folder, whole),
                  first_lines(data.reverse ? data.target : data.source, folder, whole));
}

std::vector<std::string> example_texts(const LanguageConfig& config, const std::string& folder) {
  if (config.data.built_in()) return {"the little cat ", "she reads "};
  // The beginning of a line, for the model to continue.
  const auto beginning = [](const std::string& line) {
    std::istringstream words(line);
    std::string out;
    int count = 0;
    for (std::string word; count < kFewestWords && words >> word; ++count) out += (count ? " " : "") + word;
    return out;
  };
  return first_of(first_lines(config.data.valid_text, folder, beginning),
                  first_lines(config.data.text, folder, beginning));
}

}  // namespace qkv::serve
