// Decodes batches of sentences of similar length, and restores the order.
#include "qkv/tasks/translation/translator.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/translation.h"
#include "qkv/tasks/translation/task.h"
#include "qkv/tensor/pool.h"

namespace qkv {
namespace {

constexpr int64_t kMostFloats = int64_t{1} << 26;  // approximate limit for a batch while it is decoded
constexpr int64_t kPastsOfBeam = 3;

TranslationConfig read_config(const std::string& folder) {
  const std::string path = run_config_path(folder, TaskKind::translation);
  TranslationConfig config = read_run_config(path);
  try {
    config.check_model();
  } catch (const Error& e) {
    throw Error(tr("{path}: {problem}", "path"_a = path, "problem"_a = e.message()), e.hint());
  }
  return config;
}

// A pretrained model may begin with a token that it also writes; rows of its embedding beyond the tokens have no text.
std::vector<int32_t> never_of(const Tokenizers& tokenizers, const TranslationConfig& config) {
  const Tokenizer& target = tokenizers.target;
  if (!target.pretrained()) return {target.pad(), target.bos()};
  std::vector<int32_t> out = config.decoding.never;
  for (int32_t id = target.pretrained()->size(); id < target.size(); ++id) out.push_back(id);
  return out;
}

// A decoder whose tokens of that list have probability 0, as if the vocabulary lacked them: their scores are not even
// in the sum that the probabilities of the others are divided by.
class Without : public SourceStepModel {
 public:
  Without(std::unique_ptr<SourceStepModel> model, std::vector<int32_t> never)
      : model_(std::move(model)), never_(std::move(never)) {}
  void start(const Ids& source, const Ids& lengths) override { model_->start(source, lengths); }
  Tensor step(const Ids& tokens) override {
    Tensor scores = model_->step(tokens);
    const int64_t vocabulary = scores.size(1);
    for (int64_t r = 0; r < scores.size(0); ++r)
      for (const int32_t token : never_)
        scores.mutable_ptr()[r * vocabulary + token] = -std::numeric_limits<float>::infinity();
    return scores;
  }
  void select(std::span<const int32_t> rows) override { model_->select(rows); }
  void keep_attention(bool wanted) override { model_->keep_attention(wanted); }
  Tensor attention() const override { return model_->attention(); }

 private:
  std::unique_ptr<SourceStepModel> model_;
  std::vector<int32_t> never_;
};

struct Padded {
  Ids ids, lengths;
};

Padded padded(std::span<const std::vector<int32_t>> sentences, std::span<const size_t> rows, int32_t pad,
              int64_t least) {
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

// A hypothesis' attention has a column for every padded position of its batch: only the sentence's columns are kept.
Tensor first_columns(const Tensor& x, int64_t columns) {
  if (!x.defined() || x.size(2) == columns) return x;
  const int64_t rows = x.size(0) * x.size(1), width = x.size(2);
  Tensor out = Tensor::empty({x.size(0), x.size(1), columns});
  for (int64_t r = 0; r < rows; ++r) std::copy_n(x.ptr() + r * width, columns, out.mutable_ptr() + r * columns);
  return out;
}

struct BatchLimits {
  int64_t rows;
  int64_t least;  // sentences are padded to at least this length
  // Kept while decoding: per row, source token and written token. As many tokens are expected to be written as
  // expected_length says; a longer translation takes more.
  int64_t row_floats = 0, source_floats = 0, written_floats = 0;
  int64_t longest = 0;  // of the translations

  int64_t expected_length(int64_t source) const { return std::min(longest, 2 * source + 16); }
  int64_t floats(int64_t source) const {
    return row_floats + source * source_floats + expected_length(source) * written_floats;
  }
};

// Calls work(rows) for groups of rows within the limits, shortest sentences first. If sentences are padded to `least`
// tokens, the encoder sees the padding: they share a group only if this does not make any of them longer.
template <class Work>
void in_batches(std::span<const std::vector<int32_t>> sentences, std::vector<size_t> rows, const BatchLimits& limits,
                const Work& work) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](size_t a, size_t b) { return sentences[a].size() < sentences[b].size(); });
  const auto steps = [&](size_t i) { return std::max<int64_t>(std::ssize(sentences[rows[i]]), limits.least); };
  const auto fits = [&](size_t begin, size_t end) {  // including the sentence at `end`
    const auto count = static_cast<int64_t>(end + 1 - begin);
    return count <= limits.rows && (limits.least == 0 || steps(end) == steps(begin)) &&
           count * limits.floats(steps(end)) <= kMostFloats;
  };
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && fits(begin, end); ++end) continue;
    work(std::span(rows).subspan(begin, end - begin));
    // Batches of other lengths need blocks of other sizes: those of a large model are not kept for them.
    if (Pool& pool = Pool::current(); pool.bytes() > kMostFloats * static_cast<int64_t>(sizeof(float))) pool.trim();
  }
}

}  // namespace

struct Translator::Opened : PretrainedTranslation {};

Translator::Opened Translator::opened(const std::string& folder) {
  if (is_pretrained_folder(folder)) return {open_pretrained_translation(folder)};
  const TranslationConfig config = read_config(folder);
  Tokenizers tokenizers = load_tokenizers(folder);
  auto model = std::make_unique<TranslationModel>(config, tokenizers.sizes(), run_weights(folder));
  return {{.config = config, .tokenizers = tokenizers, .model = std::move(model)}};
}

Translator::Translator(Opened opened) : Translator(*opened.model, opened.tokenizers, opened.config) {
  own_ = std::move(opened.model);
}

Translator::Translator(const std::string& folder) : Translator(opened(folder)) {}

Translator::Translator(const TranslationModel& model, Tokenizers tokenizers, const TranslationConfig& config)
    : config_(config),
      tokenizers_(std::move(tokenizers)),
      model_(&model),
      facts_(model.facts()),
      never_(never_of(tokenizers_, config)) {
  facts_.longest_input = config.longest_input();
}

TranslateOptions Translator::defaults() const {
  const TranslationDecodingConfig& d = config_.decoding;
  return {.beam = d.beam,
          .length_penalty = d.length_penalty,
          .max_length = d.max_length > 0 ? d.max_length : 50,
          .rows = d.batch_rows};
}

size_t Translator::most_tokens() const {
  const size_t places = facts_.longest_input ? static_cast<size_t>(*facts_.longest_input - 1)
                                             : limits::kSentenceTokens;  // one is for <eos>
  return std::min(limits::kSentenceTokens, places);
}

std::vector<int32_t> Translator::encode(const std::string& sentence, const Tokenizer& tokenizer, const Text& name,
                                        size_t line) const {
  const size_t most = most_tokens();
  const Text place = line == 0      ? name
                     : name.empty() ? tr("line {line}", "line"_a = line)
                                    : tr("{file}: line {line}", "file"_a = name, "line"_a = line);
  require(sentence.size() <= tokenizer.most_bytes(),
          "{place}: has {sentence} bytes; a sentence may have at most {most_bytes}", "place"_a = place,
          "sentence"_a = grouped(sentence.size()), "most_bytes"_a = grouped(tokenizer.most_bytes()));
  std::vector<int32_t> ids = tokenizer.encode(sentence);
  require(
      ids.size() <= most || most == limits::kSentenceTokens,
      "{place}: has {tokens} tokens; a sentence may have at most {most}: the model has learned no further positions",
      "place"_a = place, "tokens"_a = ids.size(), "most"_a = most);
  require(ids.size() <= most, "{place}: has {tokens} tokens; a sentence may have at most {most}", "place"_a = place,
          "tokens"_a = ids.size(), "most"_a = most);
  if (!ids.empty()) ids.push_back(tokenizer.eos());
  return ids;
}

size_t Translator::readable(std::span<const std::string> sentences) const {
  const size_t most = most_tokens();
  const auto too_long = [&](const std::string& sentence) {
    return sentence.size() > tokenizers_.source.most_bytes() || tokenizers_.source.encode(sentence).size() > most;
  };
  return static_cast<size_t>(std::ranges::find_if(sentences, too_long) - sentences.begin());
}

// The probabilities of a pretrained model are over the tokens that it may write.
std::unique_ptr<SourceStepModel> Translator::decoder_of(const AttentionEdits& edits) const {
  auto decoder = model_->decoder(edits);
  if (!tokenizers_.target.pretrained()) return decoder;
  return std::make_unique<Without>(std::move(decoder), never_);
}

std::vector<Translation> Translator::translate(std::span<const std::string> sentences,
                                               const TranslateOptions& options) const {
  std::vector<std::vector<int32_t>> ids;
  std::vector<size_t> rows;
  for (size_t i = 0; i < sentences.size(); ++i) {
    ids.push_back(encode(sentences[i], tokenizers_.source, options.name, options.first_line + i));
    if (!ids.back().empty()) rows.push_back(i);
  }
  std::vector<Translation> out(sentences.size());
  const auto decoder = decoder_of(options.edits);
  const Tokenizer& target = tokenizers_.target;
  const int64_t max_length =
      facts_.longest_input ? std::min(options.max_length, *facts_.longest_input - 1) : options.max_length;
  const SearchOptions search_options{.beam = options.beam,
                                     .best = options.best,
                                     .length_penalty = options.length_penalty,
                                     .max_length = max_length,
                                     .begin = target.bos(),
                                     .end = target.eos(),
                                     .never = never_,
                                     .keep_attention = options.keep_attention,
                                     .watch = options.watch,
                                     .tree = options.tree};
  SampleOptions sample_options = options.sampling.value_or(SampleOptions{});
  sample_options.length_penalty = options.length_penalty;
  sample_options.max_length = max_length;
  sample_options.begin = target.bos();
  sample_options.end = target.eos();
  sample_options.never = search_options.never;
  sample_options.keep_attention = options.keep_attention;
  sample_options.watch = options.watch;
  const int64_t width = options.sampling ? options.sampling->samples : options.beam;
  // Each hypothesis of a beam has scores of all tokens, and the best of them again with their positions. Hypotheses
  // share most of their past, and what none of them has any more takes at most as much again; samples share nothing.
  const int64_t scored =
      target.size() + 2 * std::min<int64_t>(target.size(), 2 * width + std::ssize(search_options.never));
  const int64_t kept = options.keep_attention ? search_options.max_length * maps() : 0;
  const int64_t sources = model_->transformer() ? 1 : width;  // other models copy theirs
  const int64_t pasts = options.sampling ? width : std::min<int64_t>(width, kPastsOfBeam);
  const BatchLimits limits{.rows = options.rows,
                           .least = source_steps(config_),
                           .row_floats = width * scored,
                           .source_floats = width * kept + sources * facts_.source_floats,
                           .written_floats = pasts * facts_.written_floats,
                           .longest = search_options.max_length};
  in_batches(ids, rows, limits, [&](std::span<const size_t> batch) {
    const Padded source = padded(ids, batch, tokenizers_.source.pad(), limits.least);
    std::vector<uint64_t> lines;
    for (const size_t r : batch) lines.push_back(options.first_line + r);
    auto found = options.sampling ? sample(*decoder, source.ids, source.lengths, lines, sample_options)
                                  : search(*decoder, source.ids, source.lengths, search_options);
    for (size_t i = 0; i < batch.size(); ++i) {
      for (Hypothesis& h : found[i])
        h.attention = first_columns(h.attention, static_cast<int64_t>(ids[batch[i]].size()));
      out[batch[i]] = {ids[batch[i]], tokenizers_.source.writing(sentences[batch[i]]), std::move(found[i])};
    }
  });
  return out;
}

ForcedTranslation Translator::encoded(const std::string& source, const std::string& target,
                                      const ForceOptions& options) const {
  return {encode(source, tokenizers_.source, options.source_name, options.first_line),
          encode(target, tokenizers_.target, options.target_name, options.first_line),
          {}};
}

std::vector<ForcedTranslation> Translator::force(const SentencePairs& pairs, const ForceOptions& options) const {
  check(pairs.source.size() == pairs.target.size(), "[force] ", pairs.source.size(), " sources and ",
        pairs.target.size(), " translations");
  std::vector<std::vector<int32_t>> sources, targets;
  ForceOptions at = options;
  for (size_t i = 0; i < pairs.source.size(); ++i, ++at.first_line) {
    ForcedTranslation one = encoded(pairs.source[i], pairs.target[i], at);
    sources.push_back(std::move(one.source));
    targets.push_back(std::move(one.target));
  }
  return force_ids(std::move(sources), std::move(targets), options);
}

std::vector<ForcedTranslation> Translator::force_ids(std::vector<std::vector<int32_t>> sources,
                                                     std::vector<std::vector<int32_t>> targets,
                                                     const ForceOptions& options) const {
  check(sources.size() == targets.size(), "[force] ", sources.size(), " sources and ", targets.size(), " targets");
  std::vector<size_t> rows;
  for (size_t i = 0; i < sources.size(); ++i)
    if (!sources[i].empty() && !targets[i].empty()) rows.push_back(i);
  std::vector<ForcedTranslation> out(sources.size());
  const auto decoder = decoder_of(options.edits);
  int64_t longest = 0;
  for (const auto& ids : targets) longest = std::max<int64_t>(longest, std::ssize(ids));
  const BatchLimits limits{.rows = options.rows > 0 ? options.rows : config_.decoding.batch_rows,
                           .least = source_steps(config_),
                           .row_floats = tokenizers_.target.size() + longest * facts_.written_floats,
                           .source_floats = facts_.source_floats + (options.keep_attention ? longest * maps() : 0)};
  in_batches(sources, rows, limits, [&](std::span<const size_t> batch) {
    const Padded source = padded(sources, batch, tokenizers_.source.pad(), limits.least);
    std::vector<std::vector<int32_t>> wanted;
    for (const size_t r : batch) wanted.push_back(targets[r]);
    auto forced = qkv::force(*decoder, source.ids, source.lengths, wanted, tokenizers_.target.bos(),
                             options.keep_attention, options.likeliest);
    for (size_t i = 0; i < batch.size(); ++i) {
      forced[i].attention = first_columns(forced[i].attention, static_cast<int64_t>(sources[batch[i]].size()));
      out[batch[i]] = {sources[batch[i]], targets[batch[i]], std::move(forced[i])};
    }
  });
  return out;
}

}  // namespace qkv
