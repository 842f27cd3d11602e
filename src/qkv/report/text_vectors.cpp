// What an encoder made of texts.
#include "qkv/report/text_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/data/text_tokenizer.h"
#include "qkv/plot/heat.h"

namespace qkv {

Tensor cosines(const Tensor& rows) {
  const int64_t n = rows.size(0), width = rows.size(1);
  constexpr int64_t kMost = 30'000;
  require(n <= kMost, "{texts} texts have too many cosines, expected at most {most} texts",
          "texts"_a = grouped(static_cast<uint64_t>(n)), "most"_a = grouped(static_cast<uint64_t>(kMost)));
  std::vector<double> lengths(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    double squares = 0;
    for (int64_t c = 0; c < width; ++c) squares += double{rows.ptr()[i * width + c]} * rows.ptr()[i * width + c];
    lengths[static_cast<size_t>(i)] = std::sqrt(squares);
  }
  Tensor out = Tensor::empty({n, n});
  float* all = out.mutable_ptr();
  parallel_for(n, static_cast<double>(n * n * width), [&](int64_t i) {
    for (int64_t j = 0; j < n; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < width; ++c) dot += double{rows.ptr()[i * width + c]} * rows.ptr()[j * width + c];
      const double both = lengths[static_cast<size_t>(i)] * lengths[static_cast<size_t>(j)];
      all[i * n + j] = static_cast<float>(both > 0 ? dot / both : 0);
    }
  });
  return out;
}

namespace report {
namespace {

using Json = nlohmann::ordered_json;

std::string printed(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The first characters of a text.
std::string beginning(const std::string& text, int64_t most) {
  if (count_characters(text) <= most) return printable(text);
  size_t end = 0;
  for (int64_t seen = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && seen++ == most - 1) break;
  return printable(text.substr(0, end)) + "…";
}

}  // namespace

std::string to_json(const std::string& text, const TextVectors& vectors, const Tensor& rows, int64_t row,
                    bool are_cosines) {
  const int64_t width = rows.size(1);
  const auto at = static_cast<size_t>(row);
  const Json out = {{"text", text},
                    {"tokens", vectors.tokens[at]},
                    {"left_out", vectors.left_out[at]},
                    {are_cosines ? "cosines" : "vector",
                     std::vector<float>(rows.ptr() + row * width, rows.ptr() + (row + 1) * width)}};
  return printed(out);
}

std::string cosine_table(const std::vector<std::string>& texts, const Tensor& cosines) {
  constexpr int64_t kShown = 60;
  const int64_t n = cosines.size(0);
  std::string out = fmt::format("{:>5}", "");
  for (int64_t j = 0; j < n; ++j) out += fmt::format(" {:>6}", j + 1);
  out += '\n';
  for (int64_t i = 0; i < n; ++i) {
    out += fmt::format("{:>5}", i + 1);
    for (int64_t j = 0; j < n; ++j) out += fmt::format(" {:>6.3f}", cosines.ptr()[i * n + j]);
    out += "  " + beginning(texts[static_cast<size_t>(i)], kShown) + "\n";
  }
  return out;
}

Figure cosine_figure(const std::vector<std::string>& texts, const Tensor& cosines) {
  constexpr int64_t kShown = 40;
  const int64_t n = cosines.size(0);
  std::vector<std::string> labels;
  for (const std::string& text : texts) labels.push_back(beginning(text, kShown));
  ColourScale colours;
  colours.low = *std::ranges::min_element(cosines.data()) < 0 ? -1 : 0;  // the middle of the colours is 0
  colours.high = 1;
  Figure out =
      heatmaps(cosines.viewed({1, 1, n, n}), "", "", {}, {.colours = colours, .x_tokens = labels, .y_tokens = labels});
  for (Panel& panel : out.panels) std::get<HeatMap>(panel.content).cell_values = n <= 12;
  out.id = "fig-cosines";
  out.title = tr("Cosines between texts");
  return out;
}

std::string to_json(const SentenceEncoder& encoder, const std::string& prompt, const Filled& filled) {
  Json gaps = Json::array();
  for (const auto& gap : filled.gaps) {
    Json list = Json::array();
    for (const Candidate& c : gap)
      list.push_back({{"token", encoder.tokenizer().piece(c.token)}, {"probability", c.probability}});
    gaps.push_back(list);
  }
  return printed({{"prompt", prompt}, {"text", filled.text}, {"gaps", gaps}});
}

std::string to_text(const SentenceEncoder& encoder, const Filled& filled, Language language) {
  std::string out = filled.text + "\n";
  for (size_t i = 0; i < filled.gaps.size(); ++i) {
    std::vector<std::string> words;
    for (const Candidate& c : filled.gaps[i])
      words.push_back(fmt::format("{} {:.3f}", printable(encoder.tokenizer().shown(c.token)), c.probability));
    out += tr("  gap {number}: {candidates}\n", "number"_a = i + 1, "candidates"_a = listed(words)).in(language);
  }
  return out;
}

std::vector<Classification> classifications(const SentenceEncoder& encoder, const std::vector<std::string>& texts,
                                            const Tensor& probabilities, int64_t top) {
  const std::vector<std::string>& classes = encoder.config().classes;
  std::vector<Classification> out;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const float> row(probabilities.ptr() + i * classes.size(), classes.size());
    Classification one{.file = "", .text = texts[i]};
    for (const int64_t c : best_classes(row, top))
      one.answers.push_back({classes[static_cast<size_t>(c)], c, row[static_cast<size_t>(c)]});
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace report
}  // namespace qkv
