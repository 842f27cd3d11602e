// Adapts both kinds of models that write from left to right.
#include "qkv/tasks/language/leaks.h"

#include <algorithm>

#include "qkv/core/check.h"

namespace qkv {
namespace {

constexpr int64_t kLongest = 24;  // tokens of a text
constexpr int64_t kRoom = 3;      // for padding after it

// A decoder that writes alone: what it is started with only gives the number of rows.
class SingleSteps : public SourceStepModel {
 public:
  explicit SingleSteps(const TransformerDecoder& model) : model_(model) {}
  void start(const Ids& source, const Ids&) override { state_ = model_.start(source.size(0)); }
  Tensor step(const Ids& tokens) override { return model_.step(state_, tokens, Run{}); }
  void select(std::span<const int32_t> rows) override { model_.select(state_, rows); }

 private:
  const TransformerDecoder& model_;
  DecoderState state_;
};

class PairedSteps : public SourceStepModel {
 public:
  explicit PairedSteps(const Transformer& model) : model_(model) {}
  void start(const Ids& source, const Ids& lengths) override { state_ = model_.start(source, lengths, Run{}); }
  Tensor step(const Ids& tokens) override { return model_.step(state_, tokens, Run{}); }
  void select(std::span<const int32_t> rows) override { model_.select(state_, rows); }

 private:
  const Transformer& model_;
  DecoderState state_;
};

int64_t longest(const LanguageGenerator& generator) {
  return std::clamp<int64_t>(generator.config().model.context - kRoom, 1, kLongest);
}

IdPair pair_of(const LanguageGenerator& generator, std::vector<int32_t> read, std::vector<int32_t> written) {
  if (generator.objective() == LanguageObjective::causal) read = {0};  // it has no source
  return {std::move(read), std::move(written)};
}

}  // namespace

LeakSubject leak_subject(const LanguageGenerator& generator) {
  require(generator.objective() != LanguageObjective::masked,
          "this model fills gaps (model.objective is masked): each token sees all others, so there is nothing to "
          "prove");
  const LanguageModel& model = generator.model();
  const int64_t vocabulary = model.output().weight.size(0);
  LeakSubject out;
  out.target_vocabulary = vocabulary;
  out.source_pad = out.target_pad = 0;
  if (generator.objective() == LanguageObjective::causal) {
    out.logits = [&model](const Ids&, const Ids&, const Ids& ids) {
      return model.output()(model.features(ids, Run{}));
    };
    out.decoder = [&model] { return std::make_unique<SingleSteps>(*model.single); };
    out.source_vocabulary = 1;
    out.begin = std::max(generator.tokenizer().begin(), 0);
  } else {
    out.logits = [&model](const Ids& source, const Ids& lengths, const Ids& ids) {
      return model.pair->logits(source, lengths, ids, Run{});
    };
    out.decoder = [&model] { return std::make_unique<PairedSteps>(*model.pair); };
    out.source_vocabulary = vocabulary;
    out.begin = model.begin();
  }
  out.most_positions = generator.config().model.context;
  return out;
}

std::vector<IdPair> random_texts(const LanguageGenerator& generator, int64_t count, const Rng& rng) {
  uint64_t drawn = 0;
  const auto random = [&] {
    std::vector<int32_t> out(1 + rng.below(static_cast<uint64_t>(longest(generator)), drawn++));
    for (int32_t& id : out)
      id = static_cast<int32_t>(rng.below(static_cast<uint64_t>(generator.tokenizer().size()), drawn++));
    return out;
  };
  std::vector<IdPair> out;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> read = random();
    out.push_back(pair_of(generator, std::move(read), random()));
  }
  return out;
}

std::vector<IdPair> pieces_of(const LanguageGenerator& generator, const std::vector<int32_t>& text, int64_t count,
                              const Rng& rng) {
  const auto most = std::min<size_t>(text.size(), static_cast<size_t>(longest(generator)));
  std::vector<IdPair> out;
  for (int64_t i = 0; i < count && most > 0; ++i) {
    const auto begin =
        text.begin() + static_cast<std::ptrdiff_t>(rng.below(text.size() - most + 1, static_cast<uint64_t>(i)));
    const std::vector<int32_t> piece(begin, begin + static_cast<std::ptrdiff_t>(most));
    out.push_back(pair_of(generator, piece, piece));
  }
  return out;
}

}  // namespace qkv
