// Batches of sentences of like length, decoded, and put back in order.
#include "qkv/tasks/translation/translator.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/io/file.h"
#include "qkv/tasks/translation/run.h"

namespace qkv {
namespace {

// Tokens of a sentence that the model can place.
size_t most_tokens(const TranslationModelConfig& model) {
  return model.positions == PositionKind::learned ? std::min(limits::kSentenceTokens, static_cast<size_t>(model.max_positions - 1)) : limits::kSentenceTokens;
}

// Floats that a hypothesis keeps for every source token (at most: those of a sentence may share them) and for every token it has written.
struct RowFloats {
  int64_t source, written, maps = 1;  // and the weights of so many maps, where attention is kept

  explicit RowFloats(const TranslationModelConfig& m) {
    if (m.kind == ModelKind::transformer) {
      const int64_t heads = m.key_heads > 0 ? m.key_heads : m.heads;
      const int64_t layers = m.decoder_layers > 0 ? m.decoder_layers : m.layers;
      source = written = 2 * layers * (m.hidden / m.heads) * heads;
      maps = layers * m.heads;
    } else {
      source = (m.bidirectional ? 3 : 2) * m.hidden, written = 0;
    }
  }
};
constexpr int64_t kMostFloats = int64_t{1} << 26;  // of a batch while it is decoded, about

TranslationConfig read_config(const std::string& folder) {
  if (!std::filesystem::exists(folder))
    throw Error(text(folder, ": no such folder; expected one that qkv train wrote"), "qkv train --preset transformer makes one, runs/transformer");
  check(std::filesystem::is_directory(folder), folder, ": is a file; expected a folder that qkv train wrote");
  check(std::filesystem::exists(folder + "/config.yaml"), folder, ": has no config.yaml; expected a folder that qkv train wrote");
  const std::string path = folder + "/config.yaml";
  check(std::filesystem::is_regular_file(path), path, ": is no file; expected the settings that qkv train wrote");
  check(std::filesystem::file_size(path) > 0, path, ": is empty, expected the settings that qkv train wrote");
  TranslationConfig config = read_run_config(path);
  try {
    config.check_model();
  } catch (const Error& e) {
    throw Error(text(path, ": ", e.what()), e.hint());
  }
  return config;
}

// A configuration can claim any size. Before memory is taken for it, the file must have as many bytes as its largest matrices at least.
void check_claim(const std::string& folder, const TranslationModelConfig& m, const Tokenizers& tokenizers, const std::string& weights) {
  const auto d = static_cast<double>(m.hidden), words = static_cast<double>(tokenizers.source.size() + (m.tied ? 0 : tokenizers.target.size()));
  const auto layers = static_cast<double>(m.layers + (m.decoder_layers > 0 ? m.decoder_layers : m.layers));
  const double places = m.positions == PositionKind::learned ? d * static_cast<double>(m.max_positions)
                        : m.positions == PositionKind::relative ? layers * static_cast<double>(m.heads) * static_cast<double>(m.max_distance)
                                                    : 0;
  const double floats = m.kind == ModelKind::transformer ? d * words + places + layers * d * (2 * d + 2 * static_cast<double>(m.ffn))
                                                : words * static_cast<double>(m.embed) + static_cast<double>(m.layers) * 3 * d * d;
  check(std::filesystem::is_regular_file(weights), weights, ": is no file; expected the weights that qkv train wrote");
  const auto bytes = static_cast<double>(std::filesystem::file_size(weights));
  check(4 * floats <= bytes, weights, ": has ", static_cast<int64_t>(bytes), " bytes, too few for the more than ", static_cast<int64_t>(floats),
        " weights of the model in ", folder, "/config.yaml (model.hidden ", m.hidden, ")");
}

struct Padded {
  Ids ids, lengths;
};

Padded padded(std::span<const std::vector<int32_t>> sentences, std::span<const size_t> rows, int32_t pad, int64_t least) {
  auto longest = static_cast<size_t>(least);
  for (const size_t r : rows) longest = std::max(longest, sentences[r].size());
  const auto count = static_cast<int64_t>(rows.size());
  Padded out{Ids::empty({count, static_cast<int64_t>(longest)}), Ids::empty({count})};
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& s = sentences[rows[i]];
    int32_t* row = out.ids.mutable_ptr() + i * longest;
    std::copy(s.begin(), s.end(), row);
    std::fill(row + s.size(), row + longest, pad);
    out.lengths.mutable_ptr()[i] = static_cast<int32_t>(s.size());
  }
  return out;
}

// A hypothesis' attention has a column for every padded position of its batch: only the sentence's own are kept.
Tensor first_columns(const Tensor& x, int64_t columns) {
  if (!x.defined() || x.size(2) == columns) return x;
  const int64_t rows = x.size(0) * x.size(1), width = x.size(2);
  Tensor out = Tensor::empty({x.size(0), x.size(1), columns});
  for (int64_t r = 0; r < rows; ++r) std::copy_n(x.ptr() + r * width, columns, out.mutable_ptr() + r * columns);
  return out;
}

struct BatchLimits {
  int64_t rows;
  int64_t least;                             // tokens to which sentences are padded
  int64_t row_floats = 0, token_floats = 0;  // that decoding a row keeps, and on top of it for each source token
};

// Calls work(rows) for groups of those rows within the limits, shortest sentences first. Sentences that are padded to `least` tokens are
// for an encoder that sees the padding: they share a group only if it makes none of them longer.
template <class Work>
void in_batches(std::span<const std::vector<int32_t>> sentences, std::vector<size_t> rows, const BatchLimits& limits, const Work& work) {
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return sentences[a].size() < sentences[b].size(); });
  const auto steps = [&](size_t i) { return std::max(std::ssize(sentences[rows[i]]), limits.least); };
  const auto fits = [&](size_t begin, size_t end) {  // the sentence at `end` too
    const auto count = static_cast<int64_t>(end + 1 - begin);
    return count <= limits.rows && (limits.least == 0 || steps(end) == steps(begin)) &&
           count * (limits.row_floats + steps(end) * limits.token_floats) <= kMostFloats;
  };
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && fits(begin, end); ++end) continue;
    work(std::span(rows).subspan(begin, end - begin));
  }
}

}  // namespace

Translator::Translator(const std::string& folder) : config_(read_config(folder)), tokenizers_(load_tokenizers(folder)) {
  check_claim(folder, config_.model, tokenizers_, run_weights(folder));
  own_ = std::make_unique<TranslationModel>(config_.model, tokenizers_.source.size(), tokenizers_.target.size(), Rng(0));
  own_->load(run_weights(folder));
  model_ = own_.get();
}

Translator::Translator(const TranslationModel& model, Tokenizers tokenizers, const TranslationConfig& config)
    : config_(config), tokenizers_(std::move(tokenizers)), model_(&model) {}

TranslateOptions Translator::defaults() const {
  const TranslationDecodingConfig& d = config_.decoding;
  return {.beam = d.beam, .length_penalty = d.length_penalty, .max_length = d.max_length > 0 ? d.max_length : 50, .rows = d.batch_rows};
}

std::vector<int32_t> Translator::encode(const std::string& sentence, const Tokenizer& tokenizer, const std::string& name, size_t line) const {
  const size_t most = most_tokens(config_.model);
  const std::string place = line == 0 ? name : qkv::text(name, name.empty() ? "" : ": ", "line ", line);
  check(sentence.size() <= tokenizer.most_bytes(), place, ": has ", grouped(sentence.size()), " bytes; a sentence may have ",
        grouped(tokenizer.most_bytes()));
  std::vector<int32_t> ids = tokenizer.encode(sentence);
  check(ids.size() <= most, place, ": has ", ids.size(), " tokens; a sentence may have ", most,
        most < limits::kSentenceTokens ? ": the model has learned no further positions" : "");
  if (!ids.empty()) ids.push_back(tokenizer.eos());
  return ids;
}

size_t Translator::readable(std::span<const std::string> sentences) const {
  const size_t most = most_tokens(config_.model);
  const auto too_long = [&](const std::string& sentence) {
    return sentence.size() > tokenizers_.source.most_bytes() || tokenizers_.source.encode(sentence).size() > most;
  };
  return static_cast<size_t>(std::ranges::find_if(sentences, too_long) - sentences.begin());
}

std::vector<Translation> Translator::translate(std::span<const std::string> sentences, const TranslateOptions& options) const {
  std::vector<std::vector<int32_t>> ids;
  std::vector<size_t> rows;
  for (size_t i = 0; i < sentences.size(); ++i) {
    ids.push_back(encode(sentences[i], tokenizers_.source, options.name, options.first_line + i));
    if (!ids.back().empty()) rows.push_back(i);
  }
  std::vector<Translation> out(sentences.size());
  const auto decoder = model_->decoder();
  const Tokenizer& target = tokenizers_.target;
  const bool table = config_.model.positions == PositionKind::learned;  // it ends somewhere
  const int64_t max_length = table ? std::min(options.max_length, config_.model.max_positions - 1) : options.max_length;
  const SearchOptions search_options{.beam = options.beam, .best = options.best, .length_penalty = options.length_penalty,
                                     .max_length = max_length, .begin = target.bos(), .end = target.eos(),
                                     .never = {target.pad(), target.bos()}, .keep_attention = options.keep_attention};
  SampleOptions sample_options = options.sampling.value_or(SampleOptions{});
  sample_options.length_penalty = options.length_penalty, sample_options.max_length = max_length;
  sample_options.begin = target.bos(), sample_options.end = target.eos(), sample_options.never = search_options.never;
  sample_options.keep_attention = options.keep_attention;
  const int64_t width = options.sampling ? options.sampling->samples : options.beam;
  // A beam's hypotheses have scores of all tokens, the best of them once more with their places, and each its own copy of the source's keys
  // and states, and of its past.
  const int64_t scored = target.size() + 2 * std::min<int64_t>(target.size(), 2 * width + std::ssize(search_options.never));
  const RowFloats floats(config_.model);
  const int64_t kept = options.keep_attention ? search_options.max_length * floats.maps : 0;
  const BatchLimits limits{options.rows, source_steps(config_), width * (scored + search_options.max_length * floats.written),
                           width * (floats.source + kept)};
  in_batches(ids, rows, limits, [&](std::span<const size_t> batch) {
    const Padded source = padded(ids, batch, tokenizers_.source.pad(), limits.least);
    std::vector<uint64_t> lines;
    for (const size_t r : batch) lines.push_back(options.first_line + r);
    auto found = options.sampling ? sample(*decoder, source.ids, source.lengths, lines, sample_options)
                                  : search(*decoder, source.ids, source.lengths, search_options);
    for (size_t i = 0; i < batch.size(); ++i) {
      for (Hypothesis& h : found[i]) h.attention = first_columns(h.attention, static_cast<int64_t>(ids[batch[i]].size()));
      out[batch[i]] = {ids[batch[i]], tokenizers_.source.writing(sentences[batch[i]]), std::move(found[i])};
    }
  });
  return out;
}

std::vector<ForcedTranslation> Translator::force(const SentencePairs& pairs, const ForceOptions& options) const {
  check(pairs.source.size() == pairs.target.size(), "[force] ", pairs.source.size(), " sources and ", pairs.target.size(), " translations");
  std::vector<std::vector<int32_t>> sources, targets;
  std::vector<size_t> rows;
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    sources.push_back(encode(pairs.source[i], tokenizers_.source, options.source_name, options.first_line + i));
    targets.push_back(encode(pairs.target[i], tokenizers_.target, options.target_name, options.first_line + i));
    if (!sources.back().empty() && !targets.back().empty()) rows.push_back(i);
  }
  std::vector<ForcedTranslation> out(pairs.source.size());
  const auto decoder = model_->decoder();
  int64_t longest = 0;
  for (const auto& ids : targets) longest = std::max(longest, std::ssize(ids));
  const RowFloats floats(config_.model);
  const BatchLimits limits{options.rows > 0 ? options.rows : config_.decoding.batch_rows, source_steps(config_),
                           tokenizers_.target.size() + longest * floats.written, floats.source + (options.keep_attention ? longest * floats.maps : 0)};
  in_batches(sources, rows, limits, [&](std::span<const size_t> batch) {
    const Padded source = padded(sources, batch, tokenizers_.source.pad(), limits.least);
    std::vector<std::vector<int32_t>> wanted;
    for (const size_t r : batch) wanted.push_back(targets[r]);
    auto forced = qkv::force(*decoder, source.ids, source.lengths, wanted, tokenizers_.target.bos(), options.keep_attention);
    for (size_t i = 0; i < batch.size(); ++i) {
      forced[i].attention = first_columns(forced[i].attention, static_cast<int64_t>(sources[batch[i]].size()));
      out[batch[i]] = {sources[batch[i]], targets[batch[i]], std::move(forced[i])};
    }
  });
  return out;
}

}  // namespace qkv
