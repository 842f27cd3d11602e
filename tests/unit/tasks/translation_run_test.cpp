// Translation from a configuration to a model: resumed to the bit, at any thread count, for all kept weights.
#include <atomic>
#include <set>

#include "qkv/io/npz.h"
#include "qkv/io/safetensors.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/translation/translator.h"
#include "unit/attention/cases.h"
#include "unit/tasks/translation_fixture.h"

namespace qkv {
namespace {

TEST_F(TranslationRunTest, ResumesToTheBitAtAnyThreadCountWithEveryKeeping) {
  for (const char* keeping : {"best", "average_last", "average_decay"}) {
    TranslationConfig c = config(4);
    if (keeping == std::string("average_last")) c.training.average_last = 0.5;
    if (keeping == std::string("average_decay")) c.training.average_decay = 0.6;
    set_threads(1);
    TranslationRun whole(c, "");
    whole.train();
    set_threads(2);
    const std::string folder = run_folder(keeping);
    {
      std::atomic<bool> stop = false;
      struct StopAfter : Observer {
        explicit StopAfter(std::atomic<bool>& flag) : stop(flag) {}
        void step(const Progress& p) override { stop = p.step >= 5; }
        std::atomic<bool>& stop;
      } observer(stop);
      Observer* list[] = {&observer};
      TranslationRun first(c, folder);
      const FitResult r = first.train(list, &stop);
      EXPECT_TRUE(r.interrupted);
      EXPECT_FALSE(fs::exists(folder + "/model.safetensors"));
    }
    set_threads(8);
    TranslationRun second(c, folder);
    const FitResult r = second.train();
    EXPECT_FALSE(r.interrupted);
    EXPECT_EQ(weights(second), weights(whole));
    const SafetensorsFile saved(folder + "/model.safetensors");
    const Tensor output = saved.tensor("output.weight");
    EXPECT_TRUE(std::equal(output.data().begin(), output.data().end(), whole.model().output().weight.data().begin()));
    // A third start has nothing to do and changes nothing.
    TranslationRun third(c, folder);
    EXPECT_EQ(third.train().progress.steps_here, 0);
    EXPECT_EQ(weights(third), weights(whole));
  }
}

TEST_F(TranslationRunTest, LearnsTheLanguageAndTranslatesInOrder) {
  TranslationConfig c = config(60);
  c.training.batch_rows = 16;
  TranslationRun run(c, run_folder());
  run.train();
  const Translator translator(run_folder());
  const std::vector<std::string> lines = {"1 2 3", "", "5 4 3", "   ", "0 0 0", "1 1"};
  TranslateOptions options = translator.defaults();
  options.keep_attention = true;
  const auto one_by_one = translator.translate(lines, options);
  ASSERT_EQ(one_by_one.size(), lines.size());
  EXPECT_EQ(translator.text(one_by_one[0].hypotheses[0]), "trois deux un");
  EXPECT_TRUE(one_by_one[1].hypotheses.empty());
  EXPECT_EQ(translator.text(one_by_one[2].hypotheses[0]), "trois quatre cinq");
  EXPECT_TRUE(one_by_one[3].hypotheses.empty());
  EXPECT_EQ(translator.text(one_by_one[4].hypotheses[0]), "nul nul nul");
  // Rows of weights over the sentence's own tokens, including <eos>.
  const Tensor a = one_by_one[0].hypotheses[0].attention;
  EXPECT_EQ(a.shape(), Shape({4, 1, 4}));
  for (int64_t t = 0; t < 4; ++t) {
    float sum = 0;
    for (int64_t s = 0; s < 4; ++s) sum += a.at({t, 0, s});
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  // Batch mates change nothing, bit for bit.
  options.beam = 3;
  const auto beam = translator.translate(lines, options);
  for (const size_t i : {0u, 2u, 4u, 5u}) {
    const auto alone = translator.translate(std::span(&lines[i], 1), options);
    EXPECT_EQ(alone[0].hypotheses[0].tokens, beam[i].hypotheses[0].tokens);
    EXPECT_EQ(alone[0].hypotheses[0].score, beam[i].hypotheses[0].score);
  }
  // A forced translation has the log p that the search reported.
  const auto forced = translator.force({{"1 2 3"}, {"trois deux un"}});
  EXPECT_NEAR(forced[0].forced.log_probability(), one_by_one[0].hypotheses[0].log_probability, 1e-5);
}

TEST_F(TranslationRunTest, ManySentencesHaveTheBitsOfOneAlone) {
  const int before = threads();
  for (const ModelKind kind : {ModelKind::transformer, ModelKind::seq2seq}) {
    TranslationConfig c = config(2);
    if (kind == ModelKind::transformer) c.model = TransformerConfig{.hidden = 16, .ffn = 24, .heads = 2};
    TranslationRun run(c, "");
    run.train();
    const Translator translator(run.model(), run.tokenizers(), run.config());
    SentencePairs many;
    for (int i = 0; i < 90; ++i) {
      std::string line;
      for (int j = 0; j < i % 11; ++j) line += text(j ? " " : "", (i + j * j) % 6);
      many.source.push_back(line);
      many.target.push_back(i % 2 ? "un deux" : "trois");
    }
    for (const bool attention : {false, true}) {
      TranslateOptions options = translator.defaults();
      options.beam = 3;
      options.keep_attention = attention;
      options.max_length = 8;
      set_threads(1);
      std::vector<Translation> alone;
      for (const std::string& line : many.source)
        alone.push_back(translator.translate(std::span(&line, 1), options)[0]);
      const auto forced_alone = translator.force(many, {.rows = 1, .keep_attention = attention});
      for (const int count : {1, 2, 8}) {
        set_threads(count);
        const auto found = translator.translate(many.source, options);
        const auto forced = translator.force(many, {.keep_attention = attention});
        for (size_t i = 0; i < many.source.size(); ++i) {
          EXPECT_EQ(forced[i].forced.log_probabilities, forced_alone[i].forced.log_probabilities)
              << i << ", threads " << count;
          ASSERT_EQ(found[i].hypotheses.size(), alone[i].hypotheses.size()) << i;
          if (found[i].hypotheses.empty()) continue;
          const Hypothesis &a = found[i].hypotheses[0], &b = alone[i].hypotheses[0];
          EXPECT_EQ(a.tokens, b.tokens) << i << ", threads " << count;
          EXPECT_EQ(a.log_probability, b.log_probability) << i << ", threads " << count;
          if (attention) tests::expect_same(a.attention, b.attention, "attention");
        }
      }
    }
  }
  set_threads(before);
}

TEST_F(TranslationRunTest, BatchMatesChangeNothingForAnEncoderThatRunsThroughThePadding) {
  TranslationConfig c = config(1);
  c.seq2seq().skip_padding = false;
  c.book.num_steps = 5;
  TranslationRun run(c, "");
  const Translator translator(run.model(), run.tokenizers(), run.config());
  const SentencePairs pairs{{"1 2 3", "4", "1 2 3 4 5 0 1 2 3", "5 4 3 2 1 0", "0 1 2 3 4 5"},
                            {"un", "deux", "trois", "un", "un"}};
  const auto together = translator.translate(pairs.source, translator.defaults());
  const auto forced = translator.force(pairs);
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    const auto alone = translator.translate(std::span(&pairs.source[i], 1), translator.defaults());
    EXPECT_EQ(alone[0].hypotheses[0].tokens, together[i].hypotheses[0].tokens) << i;
    EXPECT_EQ(alone[0].hypotheses[0].log_probability, together[i].hypotheses[0].log_probability) << i;
    EXPECT_EQ(translator.force({{pairs.source[i]}, {pairs.target[i]}})[0].forced.log_probabilities,
              forced[i].forced.log_probabilities)
        << i;
  }
}

TEST_F(TranslationRunTest, AWideBeamDecodesFewerSentencesAtOnceNotInAllTheMemory) {
  std::ofstream out(pairs());
  for (int i = 0; i < 3000; ++i) out << i % 7 << '\t' << "w" << i << '\n';
  out.close();
  TranslationConfig c = config(0);
  c.data.valid_share = 0;
  c.data.min_count = 1;
  c.seq2seq().embed = c.seq2seq().hidden = 4;
  TranslationRun run(c, "");
  const Translator translator(run.model(), run.tokenizers(), run.config());
  const std::vector<std::string> lines(56, "1 2 3");
  Pool pool;
  const PoolScope scope(pool);
  const auto found = translator.translate(lines, {.beam = 1000, .max_length = 2, .rows = 56});
  EXPECT_LT(pool.bytes(), int64_t{1} << 30) << "56 sentences with 1000 hypotheses of 3004 scores are 0.7 GB, twice";
  for (const Translation& t : found) EXPECT_EQ(t.hypotheses[0].tokens, found[0].hypotheses[0].tokens);
}

TEST_F(TranslationRunTest, EndsEarlyWhenValidationGetsWorse) {
  TranslationConfig c = config(400);
  c.training.patience = 2;
  c.training.rate = 0.05;
  TranslationRun run(c, run_folder());
  const FitResult r = run.train();
  EXPECT_TRUE(r.ended_early);
  EXPECT_LT(r.progress.epoch, 400);
  const std::string best = run_folder() + "/checkpoints/best.safetensors";
  const Tensor kept = SafetensorsFile(best).tensor("output.weight");
  EXPECT_TRUE(std::equal(kept.data().begin(), kept.data().end(), run.model().output().weight.data().begin()));
}

TEST_F(TranslationRunTest, MorePatienceResumesARunThatEndedEarly) {
  TranslationConfig c = config(400);
  c.training.patience = 1;
  c.training.rate = 0.05;
  const int64_t ended = TranslationRun(c, run_folder()).train().progress.epoch;
  EXPECT_EQ(TranslationRun(c, run_folder()).train().progress.steps_here, 0);
  c.training.patience = 3;
  TranslationRun longer(c, run_folder()), whole(c, "");
  const FitResult r = longer.train();
  EXPECT_TRUE(r.ended_early);
  EXPECT_GE(r.progress.epoch, ended + 2);
  EXPECT_EQ(whole.train().progress.epoch, r.progress.epoch);
  EXPECT_EQ(weights(longer), weights(whole));
}

// A killed run may have written best.safetensors of an epoch after its last checkpoint.
TEST_F(TranslationRunTest, TheBestWeightsAreThoseThatTheCheckpointKnows) {
  TranslationConfig c = config(4);
  c.training.rate = 0.05;
  TranslationRun run(c, run_folder());
  run.train();
  TranslationConfig longer = c;
  longer.training.epochs = 30;
  TranslationRun(longer, run_folder("longer")).train();
  const char* best = "/checkpoints/best.safetensors";
  fs::copy_file(run_folder("longer") + best, run_folder() + best, fs::copy_options::overwrite_existing);
  TranslationRun again(c, run_folder());
  EXPECT_EQ(again.train().progress.steps_here, 0);
  EXPECT_EQ(weights(again), weights(run));
}

struct StopsAfter : Observer {
  explicit StopsAfter(int64_t last) : last(last) {}
  void epoch(const Progress& p) override { stop = p.epoch >= last; }
  int64_t last;
  std::atomic<bool> stop = false;
};

TEST_F(TranslationRunTest, ALongerTrainingTakesTheModelOfTheShorterAway) {
  const std::string model = run_folder() + "/model.safetensors";
  TranslationRun(config(2), run_folder()).train();
  EXPECT_EQ(run_weights(run_folder()), model);
  StopsAfter observer(3);
  Observer* observers[] = {&observer};
  EXPECT_TRUE(TranslationRun(config(5), run_folder()).train(observers, &observer.stop).interrupted);
  EXPECT_EQ(run_weights(run_folder()), run_folder() + "/checkpoints/best.safetensors");
  TranslationRun(config(5), run_folder()).train();
  EXPECT_EQ(run_weights(run_folder()), model);
}

TEST_F(TranslationRunTest, TheEnglishPresetSplitsAsItsBookAndResumesFromItsFolder) {
  std::ofstream out(folder_ / "fra.txt");
  for (int i = 0; i < 700; ++i) out << "Go " << i % 20 << ".\tVa " << i % 30 << " !\n";
  out.close();
  TranslationConfig c = translation_preset("d2l-en-bahdanau");
  c.data.pairs = folder_ / "fra.txt";
  c.seq2seq().embed = c.seq2seq().hidden = 16;
  c.training.epochs = 2;
  TranslationRun run(c, run_folder());
  EXPECT_EQ(run.training_pairs(), 512);
  EXPECT_EQ(run.validation_pairs(), 129);
  EXPECT_LT(run.tokenizers().source.bos(), 0) << "the English edition's source vocabulary has no <bos>";
  EXPECT_EQ(run.text().train.source[3], "go 3 .");
  run.train();
  TranslationRun again(c, run_folder());
  EXPECT_EQ(again.train().progress.steps_here, 0);
  EXPECT_EQ(weights(again), weights(run));
}

TEST_F(TranslationRunTest, KeepsTheBestWeightsOrTheLast) {
  TranslationConfig c = config(12);
  c.training.rate = 0.1;  // so large that the loss goes up and down
  TranslationRun best(c, run_folder("best"));
  const FitResult result = best.train();
  c.training.keep = KeptWeights::last;
  TranslationRun last(c, run_folder("last"));
  last.train();
  const auto weight = [&](const char* run, const char* file) {
    const Tensor t = SafetensorsFile(run_folder(run) + file).tensor("output.weight");
    return std::vector<float>(t.data().begin(), t.data().end());
  };
  EXPECT_EQ(weight("best", "/model.safetensors"), weight("best", "/checkpoints/best.safetensors"));
  EXPECT_EQ(weight("last", "/model.safetensors"), weight("last", "/checkpoints/last.safetensors"));
  EXPECT_NE(weight("best", "/model.safetensors"), weight("last", "/model.safetensors"))
      << "the last epoch was the best one: " << *result.progress.valid_loss;
}

TEST_F(TranslationRunTest, ARunningAverageIsTheModelAndIsWhatIsValidated) {
  struct Weights : Observer {
    explicit Weights(const TranslationRun*& r) : run(r) {}
    void epoch(const Progress& p) override {
      after.push_back(weights(*run));
      valid = *p.valid_loss;
    }
    const TranslationRun*& run;
    std::vector<std::vector<float>> after;
    double valid = 0;
  };
  const TranslationRun* under_way = nullptr;
  Weights seen(under_way);
  Observer* list[] = {&seen};
  TranslationConfig c = config(3);
  c.training.average_decay = 0.75;
  c.training.keep = KeptWeights::last;
  TranslationRun run(c, "");
  under_way = &run;
  run.train(list);
  const std::vector<float> kept = weights(run);
  for (size_t i = 0; i < kept.size(); ++i) {
    const double two = 0.75 * seen.after[0][i] + 0.25 * seen.after[1][i];
    ASSERT_NEAR(kept[i], 0.75 * two + 0.25 * seen.after[2][i], 1e-6) << i;
  }
  // The weights are the same as without averaging, and the best average so far is kept if requested.
  c.training.average_decay = 0;
  TranslationRun plain(c, "");
  under_way = &plain;
  seen.after.clear();
  const double averaged_loss = seen.valid;
  plain.train(list);
  EXPECT_EQ(seen.after.back(), weights(plain));
  EXPECT_GT(std::abs(seen.valid - averaged_loss), 1e-4) << "the average and the last weights are not alike";
  c.training.average_decay = 0.75;
  c.training.keep = KeptWeights::best;
  TranslationRun best(c, "");
  best.train();
  EXPECT_EQ(weights(best), kept) << "the loss falls in every epoch, so the last average is the best";
}

TEST_F(TranslationRunTest, SavesTheAttentionOfPinnedSentences) {
  TranslationConfig c = config(4);
  c.training.attention_every = 2;
  TranslationRun(c, run_folder()).train();
  for (const char* name : {"/attention/epoch_0002.npz", "/attention/epoch_0004.npz"}) {
    const auto maps = read_npz(run_folder() + name);
    EXPECT_EQ(maps.size(), 4u);
    EXPECT_EQ(maps.begin()->second.shape(), Shape({4, 1, 4}));
  }
  EXPECT_FALSE(fs::exists(run_folder() + "/attention/epoch_0003.npz"));
}

TEST_F(TranslationRunTest, EverySettingOfTheExercisesTrains) {
  const auto loss = [&](auto&& change) {
    TranslationConfig c = config(2);
    change(c);
    TranslationRun run(c, "");
    return run.train().progress.epoch_loss;
  };
  const double plain = loss([](auto&) {});
  EXPECT_LT(plain, 2.5);
  for (const ScorerKind scorer :
       {ScorerKind::none, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear, ScorerKind::cosine})
    EXPECT_LT(loss([&](auto& c) { c.seq2seq().attention = scorer; }), 2.5) << name_of(scorer);
  EXPECT_LT(loss([](auto& c) { c.seq2seq().cell = CellKind::lstm; }), 2.5);
  EXPECT_LT(loss([](auto& c) { c.seq2seq().bidirectional = true; }), 2.5);
  EXPECT_LT(loss([](auto& c) {
              c.seq2seq().layers = 2;
              c.seq2seq().embed_dropout = 0.2f;
            }),
            2.5);
  EXPECT_LT(loss([](auto& c) { c.training.label_smoothing = 0.1; }), 3.0);
  EXPECT_LT(loss([](auto& c) { c.book.mask_loss = false; }), 2.5);
  EXPECT_GT(loss([](auto& c) { c.book.feed_back = 1; }), plain)
      << "its own predictions are worse inputs than the truth";
  EXPECT_LT(loss([](auto& c) { c.training.batch_tokens = 100; }), 2.5);
  EXPECT_LT(loss([](auto& c) {
              c.data.tokenizer = TokenizerKind::bpe;
              c.data.vocabulary = 28;
              c.data.shared_vocabulary = true;
            }),
            3.5);
  EXPECT_LT(loss([](auto& c) { c.data.reverse = true; }), 2.5);
  for (const ScheduleKind schedule : {ScheduleKind::warmup, ScheduleKind::cosine, ScheduleKind::step})
    EXPECT_LT(loss([&](auto& c) {
                c.training.schedule = schedule;
                c.training.warmup = 2;
              }),
              2.6)
        << name_of(schedule);
}

}  // namespace
}  // namespace qkv
