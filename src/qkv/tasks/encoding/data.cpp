// Reads texts and classes, splits texts off for validation, and encodes them.
#include "qkv/tasks/encoding/data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/core/parallel.h"
#include "qkv/data/corpus.h"
#include "qkv/data/shuffle.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/tasks/pretrained/model_json.h"

namespace qkv {
namespace {

constexpr int64_t kTextsPerTask = 16;        // encoded by one thread
constexpr double kNanosecondsPerByte = 100;  // of encoding

struct Lines {
  std::vector<std::string> texts, classes;  // no classes with the head of words
  std::vector<size_t> numbers;              // of the lines in the file, from 1
};

Lines read_lines(const std::string& path, EncoderHead head) {
  const std::string all = read_text(path);
  check_utf8(all, path);
  Lines out;
  size_t number = 0;
  for (std::string& line : split(all, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (head == EncoderHead::classes) {
      const size_t tab = line.rfind('\t');
      require(tab != std::string::npos && tab > 0 && tab + 1 < line.size(),
              "{path}: line {number}: expected a text, a tab and its class", "path"_a = path, "number"_a = number);
      out.classes.push_back(line.substr(tab + 1));
      line.resize(tab);
    }
    out.texts.push_back(std::move(line));
    out.numbers.push_back(number);
  }
  require(!out.texts.empty(), "{path}: has no text", "path"_a = path);
  return out;
}

std::vector<std::string> classes_of(const Lines& lines, const std::string& path) {
  const std::set<std::string> names(lines.classes.begin(), lines.classes.end());
  require(names.size() >= 2 && std::ssize(names) <= limits::kClasses,
          "{path}: has {count} classes, expected 2 to {most}", "path"_a = path, "count"_a = names.size(),
          "most"_a = limits::kClasses);
  return {names.begin(), names.end()};
}

LabelledTexts encoded(const Lines& lines, const std::string& path, const std::vector<std::string>& classes,
                      const PretrainedTokenizer& tokenizer, int64_t most) {
  LabelledTexts out;
  for (size_t i = 0; i < lines.classes.size(); ++i) {
    const auto found = std::ranges::find(classes, lines.classes[i]);
    require(found != classes.end(), "{path}: line {number}: the training texts have no class \"{name}\"",
            "path"_a = path, "number"_a = lines.numbers[i], "name"_a = printable(lines.classes[i]));
    out.labels.push_back(static_cast<int32_t>(found - classes.begin()));
  }
  out.texts.resize(lines.texts.size());
  size_t bytes = 0;
  for (const std::string& text : lines.texts) bytes += text.size();
  parallel_ranges(std::ssize(lines.texts), kTextsPerTask, static_cast<double>(bytes) * kNanosecondsPerByte,
                  [&](int64_t begin, int64_t end) {
                    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                      out.texts[i] = tokenizer.encode(lines.texts[i], {.most = static_cast<size_t>(most)});
                  });
  for (size_t i = 0; i < out.texts.size(); ++i) {
    require(!out.texts[i].tokens.empty(), "{path}: line {number}: the tokenizer makes no token of it", "path"_a = path,
            "number"_a = lines.numbers[i]);
    out.cut += out.texts[i].left_out > 0;
  }
  return out;
}

LabelledTexts part(const LabelledTexts& all, std::span<const int64_t> numbers) {
  LabelledTexts out;
  for (const int64_t i : numbers) {
    const auto at = static_cast<size_t>(i);
    out.texts.push_back(all.texts[at]);
    if (!all.labels.empty()) out.labels.push_back(all.labels[at]);
    out.cut += all.texts[at].left_out > 0;
  }
  return out;
}

}  // namespace

EncodingData read_encoding_data(const EncodingConfig& config, const PretrainedTokenizer& tokenizer,
                                const std::vector<std::string>& known) {
  const EncodingDataConfig& d = config.data;
  const EncoderHead head = config.model.bert.head;
  const int64_t most = d.max_tokens > 0 ? d.max_tokens : config.model.bert.model.longest();
  const Lines lines = read_lines(d.text, head);
  EncodingData out;
  if (head == EncoderHead::classes) {
    out.classes = classes_of(lines, d.text);
    const bool all_known = std::ranges::all_of(
        out.classes, [&](const std::string& c) { return std::ranges::find(known, c) != known.end(); });
    if (all_known) out.classes = known;
  }
  out.train = encoded(lines, d.text, out.classes, tokenizer, most);
  if (!d.valid_text.empty()) {
    out.valid = encoded(read_lines(d.valid_text, head), d.valid_text, out.classes, tokenizer, most);
  } else if (d.valid_share > 0) {
    const std::vector<int64_t> order =
        shuffled(out.train.count(), Rng(static_cast<uint64_t>(config.training.seed)).at("validation"));
    const auto cut = std::llround(d.valid_share * static_cast<double>(order.size()));
    require(cut > 0, "data.valid_share {share} of {texts} texts is none", "share"_a = d.valid_share,
            "texts"_a = grouped(order.size()));
    const std::span<const int64_t> numbers(order);
    out.valid = part(out.train, numbers.first(static_cast<size_t>(cut)));
    out.train = part(out.train, numbers.subspan(static_cast<size_t>(cut)));
  }
  return out;
}

void save_encoder_classes(const std::vector<std::string>& classes, const std::string& folder) {
  const nlohmann::ordered_json json = {{"classes", classes}};
  write_file(folder + "/" + facts_of(TaskKind::encoding).mark,
             json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::vector<std::string> load_encoder_classes(const std::string& folder) {
  return ModelJson(folder + "/" + facts_of(TaskKind::encoding).mark).words("classes");
}

}  // namespace qkv
