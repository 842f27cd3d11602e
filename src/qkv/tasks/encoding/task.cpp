// Batches, losses and validation of encoders.
#include "qkv/tasks/encoding/task.h"

#include <algorithm>
#include <numeric>

#include "qkv/data/corruption.h"
#include "qkv/data/shuffle.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/tasks/attention_maps.h"

namespace qkv {
namespace {

constexpr int64_t kValidRows = 32;

// Tokens of the text itself, not those that surround it.
int64_t own_tokens(const EncodedText& text) {
  return std::ranges::count_if(text.tokens, [](const EncodedToken& t) { return t.word >= 0; });
}

}  // namespace

/// Rows of texts, padded to the longest.
struct EncodingTask::Padded {
  Ids ids, types, lens;
  Ids wanted;  // (B, n): the hidden words, else kNotAsked; (B): classes
};

EncodingTask::EncodingTask(const EncoderModel& model, const EncodingConfig& config, const EncodingData& data,
                           int32_t mask, int32_t tokens)
    : model_(model),
      config_(config),
      data_(data),
      mask_(mask),
      tokens_(tokens),
      rng_(Rng(static_cast<uint64_t>(config.training.seed)).at("texts")) {}

int64_t EncodingTask::batches() const {
  return (data_.train.count() + config_.training.batch_rows - 1) / config_.training.batch_rows;
}

EncodingBatch EncodingTask::batch(int64_t epoch, int64_t index) const {
  if (epoch != order_epoch_) order_ = shuffled(data_.train.count(), rng_.at("order").at(static_cast<uint64_t>(epoch)));
  order_epoch_ = epoch;
  const int64_t begin = index * config_.training.batch_rows,
                end = std::min(data_.train.count(), begin + config_.training.batch_rows);
  return {std::vector<int64_t>(order_.begin() + begin, order_.begin() + end), epoch};
}

EncodingTask::Padded EncodingTask::padded(const LabelledTexts& set, std::span<const int64_t> rows,
                                          const Rng& rng) const {
  size_t longest = 0;
  for (const int64_t row : rows) longest = std::max(longest, set.texts[static_cast<size_t>(row)].tokens.size());
  const auto B = std::ssize(rows), n = static_cast<int64_t>(longest);
  std::vector<int32_t> ids(static_cast<size_t>(B * n), static_cast<int32_t>(config_.model.bert.pad)), types(ids.size()),
      lens, labels, wanted(ids.size(), kNotAsked);
  for (int64_t b = 0; b < B; ++b) {
    const auto number = static_cast<size_t>(rows[static_cast<size_t>(b)]);
    const std::vector<EncodedToken>& tokens = set.texts[number].tokens;
    const auto first = static_cast<size_t>(b * n);
    std::vector<int32_t> own;
    for (size_t i = 0; i < tokens.size(); ++i) {
      ids[first + i] = tokens[i].id;
      types[first + i] = tokens[i].text;
      if (tokens[i].word >= 0) own.push_back(tokens[i].id);
    }
    lens.push_back(static_cast<int32_t>(tokens.size()));
    if (classifies()) {
      labels.push_back(set.labels[number]);
      continue;
    }
    const MaskedTokens masked = mask_tokens(own,
                                            {.hidden = config_.model.hidden_of(std::ssize(own)),
                                             .random = config_.model.mask_random,
                                             .kept = config_.model.mask_kept,
                                             .mask = mask_,
                                             .vocabulary = tokens_},
                                            rng.at(number));
    for (size_t i = 0, k = 0; i < tokens.size(); ++i)
      if (tokens[i].word >= 0) {
        ids[first + i] = masked.read[k];
        wanted[first + i] = masked.wanted[k++];
      }
  }
  const bool ragged = std::ranges::any_of(lens, [&](int32_t length) { return length < n; });
  return {Ids({B, n}, ids), Ids({B, n}, types), ragged ? Ids({B}, lens) : Ids(),
          classifies() ? Ids({B}, labels) : Ids({B, n}, wanted)};
}

Tensor EncodingTask::states(const Padded& batch, const Run& run) const {
  return model_.encoder(batch.ids, batch.types, batch.lens, run);
}

Tensor EncodingTask::summed_loss(const Padded& batch, float label_smoothing, const Run& run) const {
  const Tensor seen = states(batch, run);
  if (classifies())
    return cross_entropy((*model_.classes)(seen, run.at("classes")), batch.wanted,
                         {.label_smoothing = label_smoothing, .reduction = Reduction::sum});
  const WordHead& head = *model_.words;
  return linear_cross_entropy(
      head.features(seen), head.output.weight, head.output.bias, batch.wanted,
      {.ignore_id = kNotAsked, .label_smoothing = label_smoothing, .reduction = Reduction::sum});
}

Loss EncodingTask::loss(const EncodingBatch& batch, int64_t begin, int64_t end, const Run& run) const {
  // Rows are encoded here, so that a rank makes those of its own shards only.
  EncodingBatch some{{batch.rows.begin() + begin, batch.rows.begin() + end}, batch.epoch};
  const Padded rows = padded(data_.train, some.rows, rng_.at("hidden").at(static_cast<uint64_t>(batch.epoch)));
  return {summed_loss(rows, static_cast<float>(config_.training.label_smoothing), run), count(some)};
}

double EncodingTask::count(const EncodingBatch& batch) const {
  if (classifies()) return static_cast<double>(batch.rows.size());
  int64_t hidden = 0;
  for (const int64_t row : batch.rows)
    hidden += config_.model.hidden_of(own_tokens(data_.train.texts[static_cast<size_t>(row)]));
  return static_cast<double>(hidden);
}

Validated EncodingTask::validate(Ranks* ranks) const {
  const LabelledTexts& set = data_.valid;
  const int64_t groups = (set.count() + kValidRows - 1) / kValidRows;
  const std::vector<double> found = shared_rows(ranks, groups, 3, [&](int64_t g, double* row) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(kValidRows, set.count() - g * kValidRows)));
    std::iota(numbers.begin(), numbers.end(), g * kValidRows);
    const Padded batch = padded(set, numbers, Rng(0).at("validation"));
    row[0] = summed_loss(batch, 0, Run{}).item();
    if (!classifies()) {
      row[1] =
          static_cast<double>(std::ranges::count_if(batch.wanted.data(), [](int32_t id) { return id != kNotAsked; }));
      return;
    }
    row[1] = static_cast<double>(numbers.size());
    const Ids guess = argmax((*model_.classes)(states(batch, Run{}), Run{}));
    for (int64_t i = 0; i < guess.numel(); ++i) row[2] += guess.ptr()[i] == batch.wanted.ptr()[i];
  });
  double sum = 0, count = 0, right = 0;
  for (size_t i = 0; i < found.size(); i += 3) {
    sum += found[i];
    count += found[i + 1];
    right += found[i + 2];
  }
  count = std::max(count, 1.0);
  return classifies() ? Validated(sum / count, right / count) : Validated(sum / count);
}

std::map<std::string, Array> EncodingTask::attention() const {
  const LabelledTexts& set = data_.valid.count() > 0 ? data_.valid : data_.train;
  std::map<std::string, Array> maps;
  for (int64_t i = 0; i < std::min<int64_t>(4, set.count()); ++i) {
    const EncodedText& text = set.texts[static_cast<size_t>(i)];
    const int64_t n = std::ssize(text.tokens);
    const auto forward = [&](const Run& run) {
      model_.encoder(Ids({1, n}, text.ids()), Ids({1, n}, text.types()), {}, run);
    };
    maps[qkv::text("text_", i)] = Array(stack_attention(model_.encoder.stack, "encoder", forward, {}, {}).weights);
  }
  return maps;
}

// FNV-1a.
int64_t EncodingTask::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const LabelledTexts* set : {&data_.train, &data_.valid}) {
    add(set->texts.size());
    for (const int32_t label : set->labels) add(static_cast<uint64_t>(label));
    for (const EncodedText& text : set->texts) {
      add(text.tokens.size());
      for (const EncodedToken& token : text.tokens) add(static_cast<uint64_t>(token.id));
    }
  }
  return static_cast<int64_t>(hash);
}

}  // namespace qkv
