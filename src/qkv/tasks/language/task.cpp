// Batches, loss and validation of language models.
#include "qkv/tasks/language/task.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corruption.h"
#include "qkv/data/shuffle.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/tasks/attention_maps.h"

namespace qkv {
namespace {

constexpr int64_t kRowsTogether = 32;     // blocks of a validation text
constexpr int64_t kAttentionTokens = 64;  // of a snapshot

Ids row_range(const Ids& ids, int64_t begin, int64_t end) {
  return ids.part(begin * ids.size(1), {end - begin, ids.size(1)});
}

// Rows of equal length as one array.
Ids stacked(const std::vector<std::vector<int32_t>>& rows) {
  Ids out = Ids::empty({std::ssize(rows), std::ssize(rows.front())});
  for (size_t r = 0; r < rows.size(); ++r)
    std::ranges::copy(rows[r], out.mutable_ptr() + static_cast<int64_t>(r) * out.size(1));
  return out;
}

}  // namespace

LanguageBatch language_batch(const LanguageModel& model, std::span<const int32_t> text, std::span<const int64_t> begins,
                             int64_t length, const Rng& rng) {
  const LanguageModelConfig& c = model.config;
  std::vector<std::vector<int32_t>> read, written, wanted;
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto begin = static_cast<size_t>(begins[i]), count = static_cast<size_t>(length);
    const std::span<const int32_t> block = text.subspan(begin, count);
    if (c.objective == LanguageObjective::causal) {
      const std::span<const int32_t> next = text.subspan(begin + 1, count);
      read.emplace_back(block.begin(), block.end());
      wanted.emplace_back(next.begin(), next.end());
    } else if (c.objective == LanguageObjective::masked) {
      MaskedTokens masked = mask_tokens(block,
                                        {.hidden = c.hidden_of(length),
                                         .random = c.mask_random,
                                         .kept = c.mask_kept,
                                         .mask = model.mask(),
                                         .vocabulary = static_cast<int32_t>(model.tokens)},
                                        rng.at(i));
      read.push_back(std::move(masked.read));
      wanted.push_back(std::move(masked.wanted));
    } else {
      CutSpans cut = cut_spans(
          block, {.hidden = c.hidden_of(length), .spans = c.spans_of(length), .first_mark = model.mark(0)}, rng.at(i));
      read.push_back(std::move(cut.read));
      written.emplace_back(1, model.begin());
      written.back().insert(written.back().end(), cut.written.begin(), cut.written.end() - 1);
      wanted.push_back(std::move(cut.written));
    }
  }
  return {stacked(read), written.empty() ? Ids() : stacked(written), stacked(wanted)};
}

double asked(const Ids& wanted) {
  return static_cast<double>(std::ranges::count_if(wanted.data(), [](int32_t id) { return id != kNotAsked; }));
}

Tensor language_loss(const LanguageModel& model, const LanguageBatch& batch, float label_smoothing, const Run& run) {
  const Tensor x =
      batch.written.defined() ? model.features(batch.read, batch.written, run) : model.features(batch.read, run);
  return linear_cross_entropy(
      x, model.output().weight, model.output().bias, batch.wanted,
      {.ignore_id = kNotAsked, .label_smoothing = label_smoothing, .reduction = Reduction::sum});
}

TextLoss text_loss(const LanguageModel& model, std::span<const int32_t> text, const Rng& rng, Ranks* ranks) {
  const TapePause pause;
  const int64_t context = model.config.context;
  const int64_t last = model.config.objective == LanguageObjective::causal ? 1 : 0;  // token that is only asked for
  const int64_t end = std::ssize(text) - last;
  std::vector<std::vector<int64_t>> groups;  // of blocks of equal length
  for (int64_t begin = 0; begin < end;) {
    const int64_t length = std::min(context, end - begin);
    if (length < 2 && last == 0) break;  // one token: nothing is left beside the hidden one
    std::vector<int64_t>& begins = groups.emplace_back();
    for (; std::ssize(begins) < kRowsTogether && begin + length <= end && length == std::min(context, end - begin);
         begin += length)
      begins.push_back(begin);
  }
  const std::vector<double> losses = shared_rows(ranks, std::ssize(groups), 2, [&](int64_t g, double* row) {
    const std::vector<int64_t>& begins = groups[static_cast<size_t>(g)];
    const int64_t length = std::min(context, end - begins.front());
    const LanguageBatch batch =
        language_batch(model, text, begins, length, rng.at(static_cast<uint64_t>(begins.front())));
    row[0] = language_loss(model, batch, 0, Run{}).item();
    row[1] = asked(batch.wanted);
  });
  TextLoss out;
  for (size_t i = 0; i < losses.size(); i += 2) {
    out.sum += losses[i];
    out.count += losses[i + 1];
  }
  return out;
}

TransformerAttention language_attention(const LanguageModel& model, const LanguageBatch& batch,
                                        const MapsWanted& wanted) {
  if (model.pair) return transformer_attention(*model.pair, batch.read, {}, batch.written, {}, wanted);
  const bool causal = model.config.objective == LanguageObjective::causal;
  const StackAttention seen = stack_attention(
      model.single->stack, causal ? "decoder" : "encoder", [&](const Run& run) { model.features(batch.read, run); }, {},
      wanted);
  TransformerAttention out;
  (causal ? out.weights.decoder : out.weights.encoder) = seen.weights;
  (causal ? out.value_weighted.decoder : out.value_weighted.encoder) = seen.value_weighted;
  return out;
}

LanguageTask::LanguageTask(const LanguageModel& model, const LanguageConfig& config, std::vector<int32_t> train,
                           std::vector<int32_t> valid, const std::string& name)
    : model_(model), config_(config), train_(std::move(train)), valid_(std::move(valid)) {
  const int64_t n = std::ssize(train_), context = config_.model.context, rows = config_.training.batch_rows;
  if (n < needed())
    throw Error(tr("{name}: the training text has {tokens} tokens, but a block of model.context {context} needs "
                   "{needed}",
                   "name"_a = name, "tokens"_a = grouped(static_cast<uint64_t>(n)), "context"_a = context,
                   "needed"_a = needed()),
                tr("use a longer text or a smaller --context"));
  // Every offset of the first block leaves as many blocks.
  blocks_ = std::max<int64_t>(1, (n - needed() + 1) / context);
  batches_ = config_.data.epoch_batches > 0 ? config_.data.epoch_batches : (blocks_ + rows - 1) / rows;
}

int64_t LanguageTask::needed() const {
  return config_.model.context + (config_.model.objective == LanguageObjective::causal ? 1 : 0);
}

LanguageBatch LanguageTask::batch(int64_t epoch, int64_t index) const {
  const int64_t rows = config_.training.batch_rows, context = config_.model.context;
  const auto places = static_cast<uint64_t>(std::ssize(train_) - needed() + 1);  // where a block may begin
  const Rng all = Rng(static_cast<uint64_t>(config_.training.seed)).at("blocks"),
            rng = all.at(static_cast<uint64_t>(epoch)).at(static_cast<uint64_t>(index));
  std::vector<int64_t> begins;
  if (config_.data.order == BlockOrder::random) {
    for (int64_t r = 0; r < rows; ++r)
      begins.push_back(static_cast<int64_t>(rng.at("begin").below(places, static_cast<uint64_t>(r))));
  } else {
    const Rng order = all.at("order").at(static_cast<uint64_t>(epoch));
    const auto spare = places - static_cast<uint64_t>((blocks_ - 1) * context);
    const auto offset =
        static_cast<int64_t>(order.at("offset").below(std::min(spare, static_cast<uint64_t>(context)), 0));
    if (planned_epoch_ != epoch) plan_ = shuffled(blocks_, order);
    planned_epoch_ = epoch;
    for (int64_t i = index * rows; i < std::min((index + 1) * rows, blocks_); ++i)
      begins.push_back(offset + plan_[static_cast<size_t>(i)] * context);
  }
  return language_batch(model_, train_, begins, context, rng.at("hidden"));
}

Loss LanguageTask::loss(const LanguageBatch& batch, int64_t begin, int64_t end, const Run& run) const {
  const LanguageBatch part{row_range(batch.read, begin, end),
                           batch.written.defined() ? row_range(batch.written, begin, end) : Ids(),
                           row_range(batch.wanted, begin, end)};
  return {language_loss(model_, part, static_cast<float>(config_.training.label_smoothing), run), asked(part.wanted)};
}

double LanguageTask::validate(Ranks* ranks) const {
  return text_loss(model_, valid_, Rng(0).at("validation"), ranks).mean();
}

std::map<std::string, Array> LanguageTask::attention() const {
  const std::vector<int32_t>& from = validates() ? valid_ : train_;
  const int64_t count = std::min<int64_t>({kAttentionTokens, config_.model.context, std::ssize(from)});
  const LanguageBatch batch = language_batch(model_, from, std::vector<int64_t>{0},
                                             count - (needed() - config_.model.context), Rng(0).at("attention"));
  const AttentionMaps seen = language_attention(model_, batch).weights;
  std::map<std::string, Array> maps;
  if (seen.encoder.defined()) maps["encoder"] = Array(seen.encoder);
  if (seen.decoder.defined()) maps["decoder"] = Array(seen.decoder);
  if (seen.cross.defined()) maps["cross"] = Array(seen.cross);
  return maps;
}

// FNV-1a.
int64_t LanguageTask::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const auto* ids : {&train_, &valid_}) {
    add(ids->size());
    for (const int32_t id : *ids) add(static_cast<uint64_t>(id));
  }
  return static_cast<int64_t>(hash);
}

}  // namespace qkv
