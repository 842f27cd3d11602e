// Deliberate faults of every kind, and models without faults.
#include "qkv/tasks/leaks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "qkv/core/check.h"

namespace qkv {
namespace {

constexpr int64_t kSourceWords = 13, kTargetWords = 11;

std::vector<IdPair> pairs(int64_t count = 10) {
  std::vector<IdPair> out;
  const Rng rng(8);
  uint64_t i = 0;
  const auto sentence = [&](int64_t words) {
    std::vector<int32_t> ids(1 + rng.below(6, i++));
    for (int32_t& id : ids) id = static_cast<int32_t>(4 + rng.below(static_cast<uint64_t>(words) - 4, i++));
    ids.push_back(3);
    return ids;
  };
  for (int64_t p = 0; p < count; ++p) {
    auto source = sentence(kSourceWords);
    out.push_back({std::move(source), sentence(kTargetWords)});
  }
  return out;
}

// Which kinds fail: "later padding mates cache", in that order.
std::string failed(const LeakReport& report) {
  const char* names[] = {"later", "padding", "mates", "cache"};
  std::string out;
  for (const LeakResult& r : report.results)
    if (!r.passed) out += text(out.empty() ? "" : " ", names[static_cast<int>(r.kind)]);
  return out;
}

LeakSubject subject_of(const TranslationModel& model) {
  return {.logits = [&model](const Ids& s, const Ids& l,
                             const Ids& t) { return model.output()(model.features(s, l, t, Run{})); },
          .decoder = [&model] { return model.decoder(); },
          .source_vocabulary = kSourceWords,
          .target_vocabulary = kTargetWords};
}

constexpr VocabularySizes kWords{kSourceWords, kTargetWords};

TransformerConfig transformer_config() { return {.hidden = 16, .ffn = 24, .heads = 4, .layers = 2}; }

TEST(Leaks, ATestThatNoticesNothingDoesNotPass) {
  LeakReport report{.results = {{Leak::later_tokens}}, .controls = 4, .noticed = 4};
  EXPECT_TRUE(report.passed());
  report.noticed = 0;
  EXPECT_FALSE(report.passed());
}

TranslationConfig whole(const ModelConfig& model) {
  TranslationConfig c;
  c.model = model;
  return c;
}

void expect_no_leak(const ModelConfig& config, int64_t most_positions = 0) {
  const TranslationModel model(whole(config), kWords, Rng(4));
  LeakSubject subject = subject_of(model);
  subject.most_positions = most_positions;
  const LeakReport report = leaks(subject, pairs());
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(failed(report), "");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(report.results[i].largest, 0) << i;  // to the bit
  EXPECT_LE(report.results[3].largest, 1e-6);
  EXPECT_EQ(report.noticed, report.controls);
  for (const LeakResult& r : report.results) EXPECT_GT(r.tried, 20);
}

TEST(Leaks, FindsNoneInATransformer) {
  expect_no_leak(transformer_config());
  TransformerConfig pre = transformer_config();
  pre.norm = NormPlace::pre;
  pre.key_heads = 2;
  pre.attention = ScorerKind::additive;
  pre.activation = Activation::gelu;
  expect_no_leak(pre);
}

TEST(Leaks, FindsNoneWithAnyPositions) {
  for (const PositionKind positions :
       {PositionKind::none, PositionKind::relative, PositionKind::rotary, PositionKind::alibi}) {
    SCOPED_TRACE(name_of(positions));
    TransformerConfig c = transformer_config();
    c.positions = positions;
    expect_no_leak(c);
  }
}

TEST(Leaks, StaysWithinALearnedTableOfPositions) {
  TransformerConfig learned = transformer_config();
  learned.positions = PositionKind::learned;
  learned.max_positions = 8;
  expect_no_leak(learned, 8);
}

TEST(Leaks, FindsNoneInARecurrentModelThatSkipsPadding) {
  Seq2SeqConfig c;
  c.hidden = c.embed = 12;
  for (const ScorerKind attention : {ScorerKind::additive, ScorerKind::dot, ScorerKind::none}) {
    c.attention = attention;
    expect_no_leak(c);
  }
}

TEST(Leaks, FindsThatTheBooksEncoderReadsPadding) {
  Seq2SeqConfig c;
  c.hidden = c.embed = 12;
  c.skip_padding = false;
  const TranslationModel model(whole(c), kWords, Rng(4));
  LeakSubject subject = subject_of(model);
  EXPECT_EQ(failed(leaks(subject, pairs())), "padding");
  subject.least_source = 10;  // with this padding in all cases
  EXPECT_EQ(failed(leaks(subject, pairs())), "padding");
}

// The steps of a Transformer, with faults of a cache.
class Steps : public SourceStepModel {
 public:
  enum class Fault { none, no_mask, no_select };
  Steps(const Transformer& model, Fault fault) : model_(model), fault_(fault) {}
  void start(const Ids& source, const Ids& lengths) override {
    state_ = model_.start(source, fault_ == Fault::no_mask ? Ids() : lengths, Run{});
  }
  Tensor step(const Ids& tokens) override { return model_.step(state_, tokens, Run{}); }
  void select(std::span<const int32_t> rows) override {
    std::vector<int32_t> same(rows.size());
    for (size_t i = 0; i < same.size(); ++i)
      same[i] = static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(i), state_.rows() - 1));
    model_.select(state_, fault_ == Fault::no_select ? std::span<const int32_t>(same) : rows);
  }

 private:
  const Transformer& model_;
  Fault fault_;
  Transformer::State state_;
};

class SeededLeaks : public testing::Test {
 protected:
  SeededLeaks() : model_(options_, kWords, Rng(6)) {
    subject_.logits = [this](const Ids& s, const Ids& l, const Ids& t) { return model_.logits(s, l, t, qkv::Run{}); };
    subject_.decoder = [this] { return std::make_unique<Steps>(model_, Steps::Fault::none); };
    subject_.source_vocabulary = kSourceWords;
    subject_.target_vocabulary = kTargetWords;
  }
  TransformerConfig options_ = transformer_config();
  Transformer model_;
  LeakSubject subject_;
};

TEST_F(SeededLeaks, NoFaultNoLeak) { EXPECT_EQ(failed(leaks(subject_, pairs())), ""); }

TEST_F(SeededLeaks, ADecoderWithoutACausalMaskIsCaught) {
  const TransformerEncoder seeing_all(options_, kTargetWords,
                                      Rng(7));  // an encoder over the target: later tokens are not hidden
  subject_.logits = [&](const Ids& s, const Ids& l, const Ids& t) {
    const Ids all({t.size(0)}, std::vector<int32_t>(static_cast<size_t>(t.size(0)), static_cast<int32_t>(t.size(1))));
    Tensor y = model_.logits(s, l, t, qkv::Run{}).copied();
    const Tensor leak = seeing_all(t, all, qkv::Run{});
    for (int64_t i = 0; i < t.numel(); ++i) y.mutable_ptr()[i * kTargetWords] += 1e-4f * leak.ptr()[i * 16];
    return y;
  };
  const LeakReport report = leaks(subject_, pairs());
  EXPECT_FALSE(report.results[0].passed);
  EXPECT_GT(report.results[0].largest, 1e-6);
  EXPECT_LT(report.results[0].largest, 1e-2);
  EXPECT_TRUE(report.results[2].passed);  // rows are independent
  EXPECT_FALSE(report.passed());
}

TEST_F(SeededLeaks, AnEncoderWithoutAPaddingMaskIsCaught) {
  subject_.logits = [this](const Ids& s, const Ids&, const Ids& t) { return model_.logits(s, {}, t, qkv::Run{}); };
  subject_.decoder = [this] { return std::make_unique<Steps>(model_, Steps::Fault::no_mask); };
  EXPECT_EQ(failed(leaks(subject_, pairs())), "padding");
}

TEST_F(SeededLeaks, RowsThatMixAreCaught) {
  subject_.logits = [this](const Ids& s, const Ids& l,
                           const Ids& t) {  // the mean over the batch, as in batch norm
    Tensor y = model_.logits(s, l, t, qkv::Run{}).copied();
    const int64_t rows = y.size(0), each = y.numel() / rows;
    std::vector<float> mean(static_cast<size_t>(each), 0);
    for (int64_t i = 0; i < y.numel(); ++i)
      mean[static_cast<size_t>(i % each)] += y.ptr()[i] / static_cast<float>(rows);
    if (rows > 1)
      for (int64_t i = 0; i < y.numel(); ++i) y.mutable_ptr()[i] -= 1e-3f * mean[static_cast<size_t>(i % each)];
    return y;
  };
  const LeakReport report = leaks(subject_, pairs());
  EXPECT_TRUE(report.results[0].passed);
  EXPECT_TRUE(report.results[1].passed);
  EXPECT_FALSE(report.results[2].passed);
}

TEST_F(SeededLeaks, RowsThatDependOnTheirPlaceInTheBatchAreCaught) {
  subject_.logits = [this](const Ids& s, const Ids& l, const Ids& t) {
    Tensor y = model_.logits(s, l, t, qkv::Run{}).copied();
    y.mutable_ptr()[y.numel() - 1] += y.size(0) > 1 ? 1e-6f : 0;  // only the last row, in its last step
    y.mutable_ptr()[y.numel() / y.size(0) * (y.size(0) - 1)] += y.size(0) > 1 ? 1e-6f : 0;
    return y;
  };
  EXPECT_FALSE(leaks(subject_, pairs()).results[2].passed);
}

TEST_F(SeededLeaks, ACacheAtTheWrongPositionIsCaught) {
  Transformer standing(options_, kWords, Rng(6));
  standing.decoder.advance_positions = false;  // the book's prediction
  subject_.decoder = [&] { return std::make_unique<Steps>(standing, Steps::Fault::none); };
  EXPECT_EQ(failed(leaks(subject_, pairs())), "cache");
}

TEST_F(SeededLeaks, ACacheThatDoesNotMoveItsRowsIsCaught) {
  subject_.decoder = [this] { return std::make_unique<Steps>(model_, Steps::Fault::no_select); };
  EXPECT_EQ(failed(leaks(subject_, pairs())), "cache");
}

TEST_F(SeededLeaks, ScoresThatAreNotNumbersFailEverywhere) {
  subject_.logits = [](const Ids&, const Ids&, const Ids& t) {
    return full({t.size(0), t.size(1), kTargetWords}, std::numeric_limits<float>::quiet_NaN());
  };
  const LeakReport report = leaks(subject_, pairs());
  EXPECT_EQ(failed(report), "later padding mates cache");
  EXPECT_TRUE(std::isnan(report.results[0].largest));
}

TEST_F(SeededLeaks, AModelThatIgnoresItsInputIsNoticedByTheControls) {
  subject_.logits = [](const Ids&, const Ids&, const Ids& t) { return zeros({t.size(0), t.size(1), kTargetWords}); };
  const LeakReport report = leaks(subject_, pairs());
  EXPECT_TRUE(report.results[0].passed && report.results[1].passed && report.results[2].passed);
  EXPECT_EQ(report.controls, 20);
  EXPECT_EQ(report.noticed, 0);
}

TEST_F(SeededLeaks, NeedsAPairAndTwoSides) {
  EXPECT_THROW(leaks(subject_, {}), Error);
  const std::vector<IdPair> empty{{{}, {3}}};
  EXPECT_THROW(leaks(subject_, empty), Error);
}

TEST_F(SeededLeaks, OnePairAloneIsEnoughToFindMixedRows) {
  EXPECT_EQ(failed(leaks(subject_, pairs(1))), "");
  subject_.logits = [this](const Ids& s, const Ids& l, const Ids& t) {
    Tensor y = model_.logits(s, l, t, qkv::Run{}).copied();
    if (y.size(0) > 1) y.mutable_ptr()[0] += 0.5f;
    return y;
  };
  EXPECT_FALSE(leaks(subject_, pairs(1)).results[2].passed);
}

}  // namespace
}  // namespace qkv
