// Batches, loss and validation of translation, as the settings define them.
#include "qkv/tasks/translation/task.h"

#include <numeric>

#include "qkv/decode/force.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/matmul.h"

namespace qkv {
namespace {

Ids row_range(const Ids& ids, int64_t begin, int64_t end) {
  const int64_t width = ids.rank() == 2 ? ids.size(1) : 1;
  return ids.part(begin * width, ids.rank() == 2 ? Shape{end - begin, width} : Shape{end - begin});
}

double sum_of(const Ids& ids) { return std::accumulate(ids.data().begin(), ids.data().end(), 0.0); }

// Replaces some inputs of the decoder by what the model itself predicts there from the true inputs before it.
Ids with_predictions(const Ids& target_in, const Tensor& logits, double share, const Rng& rng) {
  const int64_t steps = target_in.size(1), vocabulary = logits.size(2);
  const Tensor chance = uniform(target_in.shape(), rng);
  Ids out = Ids::empty(target_in.shape());
  for (int64_t i = 0; i < target_in.numel(); ++i) {
    int32_t& token = out.mutable_ptr()[i];
    token = target_in.ptr()[i];
    if (i % steps == 0 || chance.ptr()[i] >= share) continue;
    const float* row = logits.ptr() + (i - 1) * vocabulary;
    token = static_cast<int32_t>(std::max_element(row, row + vocabulary) - row);
  }
  return out;
}

}  // namespace

TranslationTask::TranslationTask(const TranslationModel& model, const TranslationConfig& config,
                                 std::vector<IdPair> train, std::vector<IdPair> valid, const Tokenizers& tokenizers)
    : model_(model),
      config_(config),
      source_steps_(source_steps(config)),
      pad_source_(tokenizers.source.pad()),
      pad_target_(tokenizers.target.pad()),
      bos_(tokenizers.target.bos()),
      train_(batches_of(std::move(train), {.rows = config.training.batch_rows,
                                           .tokens = config.training.batch_tokens,
                                           .by_length = config.training.by_length,
                                           .fixed_steps = config.book.mask_loss ? 0 : config.book.num_steps,
                                           .shuffle = true,
                                           .seed = static_cast<uint64_t>(config.training.seed)})),
      valid_(batches_of(std::move(valid), {.rows = 64, .by_length = true, .shuffle = false})) {}

TranslationBatches TranslationTask::batches_of(std::vector<IdPair> pairs, BatchOptions options) const {
  options.source_steps = source_steps_;
  return TranslationBatches(std::move(pairs), pad_source_, pad_target_, bos_, options);
}

Loss TranslationTask::loss(const TranslationBatch& batch, int64_t begin, int64_t end, const Run& run) const {
  const Ids source = row_range(batch.source, begin, end), lengths = row_range(batch.source_lens, begin, end);
  const Ids target_out = row_range(batch.target_out, begin, end);
  Ids target_in = row_range(batch.target_in, begin, end);
  const Linear& output = model_.output();
  if (config_.book.feed_back > 0) {
    const TapePause pause;
    const Tensor logits = output(model_.features(source, lengths, target_in, Run{}));
    target_in = with_predictions(target_in, logits, config_.book.feed_back, run.rng.at("feed_back"));
  }
  CrossEntropyOptions options{.label_smoothing = static_cast<float>(config_.training.label_smoothing),
                              .reduction = Reduction::sum};
  if (config_.book.mask_loss) options.ignore_id = pad_target_;
  const Ids target_lens = row_range(batch.target_lens, begin, end);
  const Tensor features =
      model_.features(source, lengths, target_in, run, config_.book.mask_loss ? target_lens : Ids());
  const Tensor total = linear_cross_entropy(features, output.weight, output.bias, target_out, options);
  const double tokens = sum_of(target_lens);
  // The book minimises and prints the sum over the batch divided by num_steps.
  if (config_.book.loss == LossUnit::book) {
    const double unit = 1.0 / static_cast<double>(config_.book.num_steps);
    return {scale(total, static_cast<float>(unit)), tokens};
  }
  return {total, config_.book.mask_loss ? tokens : static_cast<double>(target_out.numel())};
}

double TranslationTask::count(const TranslationBatch& batch) const {
  const bool padding_counts = !config_.book.mask_loss && config_.book.loss != LossUnit::book;
  return padding_counts ? static_cast<double>(batch.target_out.numel()) : sum_of(batch.target_lens);
}

double TranslationTask::validate(Ranks* ranks) const {
  const Linear& output = model_.output();
  const std::vector<double> losses = shared_rows(ranks, valid_.batches(), 2, [&](int64_t b, double* row) {
    const TranslationBatch batch = valid_.batch(0, b);
    const Tensor x = model_.features(batch.source, batch.source_lens, batch.target_in, Run{}, batch.target_lens);
    row[0] = linear_cross_entropy(x, output.weight, output.bias, batch.target_out,
                                  {.ignore_id = pad_target_, .reduction = Reduction::sum})
                 .item();
    row[1] = sum_of(batch.target_lens);
  });
  double sum = 0, count = 0;
  for (size_t i = 0; i < losses.size(); i += 2) {
    sum += losses[i];
    count += losses[i + 1];
  }
  return sum / std::max(count, 1.0);
}

std::map<std::string, Array> TranslationTask::attention() const {
  const std::vector<IdPair>& from = valid_pairs().empty() ? pairs() : valid_pairs();
  const std::vector<IdPair> first(from.begin(), from.begin() + std::min<std::ptrdiff_t>(4, std::ssize(from)));
  std::vector<std::vector<int32_t>> targets;
  for (const IdPair& pair : first) targets.push_back(pair.target);
  const TranslationBatch batch = batches_of(first, {.rows = 4, .shuffle = false}).batch(0, 0);
  const auto decoder = model_.decoder();
  const auto forced = force(*decoder, batch.source, batch.source_lens, targets, bos_);
  std::map<std::string, Array> maps;
  for (size_t i = 0; i < forced.size(); ++i)
    if (forced[i].attention.defined()) maps[text("sentence_", i)] = Array(forced[i].attention);
  return maps;
}

// FNV-1a.
int64_t TranslationTask::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const auto* list : {&pairs(), &valid_pairs()}) {
    add(list->size());
    for (const IdPair& pair : *list)
      for (const auto* side : {&pair.source, &pair.target}) {
        add(side->size());
        for (const int32_t id : *side) add(static_cast<uint64_t>(id));
      }
  }
  return static_cast<int64_t>(hash);
}

int64_t source_steps(const TranslationConfig& config) {
  return config.facts().reads_padding ? config.book.num_steps : 0;
}

}  // namespace qkv
