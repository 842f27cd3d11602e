// The configuration of a translation run: kinds of models, files of older versions, the settings of a command line.
#include "qkv/tasks/translation/config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/core/check.h"
#include "unit/tasks/translation_fixture.h"

namespace qkv {
namespace {

TranslationConfig parsed(const std::string& yaml) {
  TranslationConfig c;
  c.parse(yaml, "c.yaml");
  return c;
}

TEST(TranslationConfig, TheKindChoosesTheSettingsWhereverItStands) {
  const TranslationConfig c = parsed("model:\n  heads: 8\n  key_heads: 2\n  kind: transformer\n");
  EXPECT_EQ(c.kind(), ModelKind::transformer);
  EXPECT_EQ(c.transformer().heads, 8);
  EXPECT_EQ(c.transformer().key_heads, 2);
  EXPECT_EQ(parsed("model:\n  cell: lstm\n").seq2seq().cell, CellKind::lstm);
}

TEST(TranslationConfig, AKeyOfAnotherKindIsUnknown) {
  EXPECT_EQ(
      error_of([] { parsed("model:\n  heads: 8\n"); }),
      "c.yaml:2: unknown key \"heads\" in the block \"model\": a setting of transformer, but model.kind is seq2seq");
  EXPECT_EQ(
      error_of([] { parsed("model:\n  kind: transformer\n  cell: lstm\n"); }),
      "c.yaml:3: unknown key \"cell\" in the block \"model\": a setting of seq2seq, but model.kind is transformer");
  EXPECT_EQ(error_of([] { parsed("model:\n  kind: transformer\n  head: 8\n"); }),
            "c.yaml:3: unknown key \"head\" in the block \"model\" | did you mean \"heads\"?");
  EXPECT_EQ(error_of([] { parsed("model:\n  kind: transformers\n"); }),
            "c.yaml:2: model.kind: got \"transformers\", expected one of seq2seq, transformer | did you mean "
            "\"transformer\"?");
  TranslationConfig c;
  EXPECT_EQ(error_of([&] { c.settings().find("model.ffn"); }),
            "model.ffn is a setting of transformer, but model.kind is seq2seq");
}

TEST(TranslationConfig, ARefusedFileChangesNothing) {
  TranslationConfig c;
  EXPECT_NE(error_of([&] { c.parse("model:\n  kind: transformer\n  heads: none\n", "c.yaml"); }), "");
  EXPECT_EQ(c.kind(), ModelKind::seq2seq);
}

TEST(TranslationConfig, ADumpReadsBackWithValuesThatWereLeftOpen) {
  TranslationConfig c;
  c.model = TransformerConfig{.hidden = 24, .dropout = 0.3f};
  c.transformer().decoder_layers = 3;
  const std::string dump = c.settings().dump();
  EXPECT_NE(dump.find("  key_heads: same "), std::string::npos) << dump;
  EXPECT_NE(dump.find("  dropout: 0.3 "), std::string::npos) << dump;
  TranslationConfig back = parsed(dump);
  EXPECT_EQ(back.settings().dump(), dump);
  EXPECT_EQ(back.transformer().decoder_depth(), 3);
  EXPECT_FALSE(back.transformer().key_heads);
}

// Both as written by a version that had one list of keys for all kinds of models.
TEST(TranslationConfig, ConfigurationsOfOlderRunsAreRead) {
  const std::string folder = QKV_SOURCE_DIR "/tests/golden/";
  const TranslationConfig s = read_run_config(folder + "old_config_seq2seq.yaml");
  EXPECT_EQ(s.seq2seq().hidden, 32);
  EXPECT_EQ(s.seq2seq().attention, ScorerKind::additive);
  EXPECT_FALSE(s.seq2seq().skip_padding);
  EXPECT_EQ(s.book.loss, LossUnit::book);
  EXPECT_EQ(s.book.num_steps, 10);
  EXPECT_EQ(s.book.feed_back, 0.25);
  EXPECT_EQ(s.training.epochs, 250);
  const TranslationConfig t = read_run_config(folder + "old_config_transformer.yaml");
  EXPECT_EQ(t.transformer().hidden, 128);
  EXPECT_EQ(t.transformer().key_heads, 2);
  EXPECT_EQ(t.transformer().attention, ScorerKind::scaled_dot);
  EXPECT_EQ(t.transformer().attention_rate(), 0.1f);
  EXPECT_FALSE(t.transformer().decoder_layers);
  EXPECT_TRUE(t.transformer().tied);
  EXPECT_TRUE(t.book.positions);
  EXPECT_FALSE(t.book.mask_loss);
  EXPECT_EQ(t.training.label_smoothing, 0.1);
}

TEST(TranslationConfig, TheFlagOfASettingIsTheSameForAllKinds) {
  for (const ModelKind kind : every<ModelKind>()) {
    TranslationConfig c;
    c.set_kind(kind);
    EXPECT_EQ(c.settings().find("book.positions").flag, "--book-positions") << name_of(kind);
  }
}

}  // namespace
}  // namespace qkv
