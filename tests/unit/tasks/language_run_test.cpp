// Language models from a configuration to a model that writes: batches, resumed runs, generation, gaps, scores.
#include "qkv/tasks/language/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>

#include "qkv/core/parallel.h"
#include "qkv/data/corruption.h"
#include "qkv/io/safetensors.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/language/leaks.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/run_config.h"
#include "support/files.h"
#include "support/threads.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

class LanguageRunTest : public testing::Test {
 protected:
  void SetUp() override { qkv_test::put_bytes(text(), counted(60)); }
  std::string text() const { return folder_ / "text.txt"; }
  std::string run_folder(const std::string& name = "run") const { return folder_ / name; }
  // "one two three one two three ...", which a model learns in seconds.
  static std::string counted(int lines) {
    std::string out;
    for (int i = 0; i < lines; ++i) out += "one two three four\n";
    return out;
  }
  LanguageConfig config(LanguageObjective objective = LanguageObjective::causal, int64_t epochs = 3) const {
    LanguageConfig c;
    c.data.text = text();
    c.data.tokenizer = objective == LanguageObjective::causal ? TextTokens::characters : TextTokens::words;
    c.data.min_count = 1;
    c.model.objective = objective;
    c.model.context = 16;
    c.model.transformer.hidden = 32;
    c.model.transformer.ffn = 64;
    c.model.transformer.heads = 2;
    c.model.transformer.layers = 2;
    c.training.epochs = epochs;
    c.training.batch_rows = 8;
    c.training.rate = 0.01;
    c.training.checkpoint_seconds = 0;
    return c;
  }
  // Enough steps to learn it.
  LanguageConfig longer(LanguageObjective objective) const {
    LanguageConfig c = config(objective, 10);
    c.data.order = BlockOrder::random;
    c.data.epoch_batches = 60;
    c.training.rate = 0.003;
    return c;
  }
  static std::vector<float> weights(const LanguageRun& run) {
    const auto data = run.parameters().flat().data();
    return {data.begin(), data.end()};
  }
  qkv_test::TempFolder folder_;
  qkv_test::ThreadsScope threads_scope_;
};

TEST_F(LanguageRunTest, AnEpochReadsEveryBlockOnce) {
  LanguageConfig c = config();
  c.data.valid_share = 0;
  const LanguageRun run(c, "");
  const LanguageTask& task = run.task();
  const int64_t tokens = std::ssize(task.train_ids());
  ASSERT_EQ(tokens, 60 * 19);
  for (const int64_t epoch : {0, 3}) {
    int64_t rows = 0;
    for (int64_t b = 0; b < task.batches(); ++b) {
      const LanguageBatch batch = task.batch(epoch, b);
      rows += task.rows(batch);
      ASSERT_EQ(batch.read.size(1), 16);
      for (int64_t i = 0; i < batch.read.numel(); ++i)
        if (i % 16 != 15) {
          EXPECT_EQ(batch.wanted.ptr()[i], batch.read.ptr()[i + 1]);
        }
      const LanguageBatch again = task.batch(epoch, b);  // a pure function
      EXPECT_TRUE(std::ranges::equal(batch.read.data(), again.read.data()));
    }
    EXPECT_EQ(rows, (tokens - 16) / 16);
  }
  // Other epochs cut the text at other places, and in another order.
  EXPECT_FALSE(std::ranges::equal(task.batch(0, 0).read.data(), task.batch(1, 0).read.data()));
}

TEST_F(LanguageRunTest, RandomBlocksFillAnyNumberOfBatches) {
  LanguageConfig c = config();
  c.data.order = BlockOrder::random;
  c.data.epoch_batches = 7;
  const LanguageRun run(c, "");
  EXPECT_EQ(run.task().batches(), 7);
  EXPECT_EQ(run.updates(), 21);
  std::set<std::vector<int32_t>> different;
  for (int64_t b = 0; b < 7; ++b) {
    const LanguageBatch batch = run.task().batch(1, b);
    EXPECT_EQ(batch.read.size(0), 8);
    different.emplace(batch.read.data().begin(), batch.read.data().end());
  }
  EXPECT_EQ(different.size(), 7u);
}

TEST_F(LanguageRunTest, ResumesToTheBitAtAnyThreadCountForEveryObjective) {
  for (const LanguageObjective objective : every<LanguageObjective>()) {
    LanguageConfig c = config(objective, 4);
    c.model.transformer.dropout = 0.1f;
    set_threads(1);
    LanguageRun whole(c, "");
    whole.train();
    set_threads(2);
    const std::string folder = run_folder(std::string(name_of(objective)));
    {
      std::atomic<bool> stop = false;
      struct StopAfter : Observer {
        explicit StopAfter(std::atomic<bool>& flag) : stop(flag) {}
        void step(const Progress& p) override { stop = p.step >= 5; }
        std::atomic<bool>& stop;
      } observer(stop);
      Observer* list[] = {&observer};
      LanguageRun first(c, folder);
      EXPECT_TRUE(first.train(list, &stop).interrupted);
    }
    set_threads(8);
    LanguageRun second(c, folder);
    EXPECT_FALSE(second.train().interrupted);
    EXPECT_EQ(weights(second), weights(whole));
    EXPECT_TRUE(fs::exists(folder + "/model.safetensors"));
    LanguageRun third(c, folder);
    EXPECT_EQ(third.train().progress.steps_here, 0);
    // Another setting is refused by name.
    c.model.context = 17;
    EXPECT_EQ(qkv_test::error_of([&] { LanguageRun(c, folder); }),
              folder + "/config.yaml: model.context is 16, but 17 was requested");
  }
}

TEST_F(LanguageRunTest, LearnsToContinueAText) {
  LanguageRun run(longer(LanguageObjective::causal), run_folder());
  run.train();
  const LanguageGenerator generator(run_folder());
  GenerateOptions options = generator.defaults();
  options.temperature = 0;
  options.max_tokens = 60;  // several windows of 16
  const std::vector<std::string> prompts{"one two ", "three", "", "one two three four\none two three four\none"};
  const std::vector<Continued> all = generator.generate(prompts, options);
  EXPECT_EQ(all[0].texts[0].text.substr(0, 20), "three four\none two t");
  EXPECT_EQ(all[1].texts[0].text.substr(0, 20), " four\none two three ");
  EXPECT_EQ(all[2].texts[0].text.substr(0, 20), "one two three four\no");
  EXPECT_EQ(all[3].unread, 41 - 16);
  EXPECT_EQ(all[3].texts[0].text.substr(0, 20), " two three four\none ");
  EXPECT_EQ(all[0].texts[0].tokens.size(), 60u);
  EXPECT_EQ(all[0].texts[0].log_probabilities.size(), 60u);
  EXPECT_EQ(all[0].texts[0].end, TextEnd::length);

  // Each prompt alone, in other batches, and streamed, gives the same.
  options.rows = 2;
  options.temperature = 1;
  const std::vector<Continued> drawn = generator.generate(prompts, options);
  options.rows = 64;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::string shown;
    options.on_text = [&](size_t, size_t, const std::string& piece) { shown += piece; };
    const Continued alone = generator.generate(std::span(prompts).subspan(i, 1), options)[0];
    EXPECT_EQ(alone.texts[0].text, drawn[i].texts[0].text);
    EXPECT_EQ(shown, drawn[i].texts[0].text);
  }
  options.on_text = {};

  // A stop string ends a text before it, wherever tokens begin.
  options.temperature = 0;
  options.stops = {"three f", "zzz"};
  std::string shown;
  options.on_text = [&](size_t, size_t, const std::string& piece) { shown += piece; };
  const Continued stopped = generator.generate(std::span(prompts).first(1), options)[0];
  EXPECT_EQ(stopped.texts[0].text, "");
  EXPECT_EQ(stopped.texts[0].end, TextEnd::stop);
  options.stops = {"o t"};
  EXPECT_EQ(generator.generate(std::span(prompts).subspan(1, 1), options)[0].texts[0].text, " four\none tw");
  EXPECT_EQ(shown, " four\none tw");

  // The score of the validation text is the validation loss.
  const TextScore score = generator.score(run.text().valid, verbatim("valid"));
  EXPECT_EQ(score.nats_per_token(), run.task().validate());
  EXPECT_EQ(score.scored, static_cast<double>(run.task().valid_ids().size() - 1));
  EXPECT_LT(score.perplexity(), 1.2);
  EXPECT_NEAR(score.bits_per_character(), score.nats / std::log(2) / static_cast<double>(score.characters), 1e-12);
  EXPECT_EQ(qkv_test::error_of([&] { generator.fill("a [MASK]", 1, options); }),
            "this model does not fill gaps (model.objective is causal): it continues texts");
  EXPECT_TRUE(leaks(leak_subject(generator), random_texts(generator, 6, Rng(1))).passed());
}

TEST_F(LanguageRunTest, LearnsToFillGaps) {
  LanguageRun run(longer(LanguageObjective::masked), run_folder());
  run.train();
  const LanguageGenerator generator(run_folder());
  const Filled filled = generator.fill("one two [MASK] four\none [MASK] three", 3, generator.defaults());
  EXPECT_EQ(filled.text, "one two three four\none two three");
  ASSERT_EQ(filled.gaps.size(), 2u);
  ASSERT_EQ(filled.gaps[0].size(), 3u);
  EXPECT_GT(filled.gaps[0][0].probability, filled.gaps[0][1].probability);
  const auto error = [&](const std::string& prompt) {
    return qkv_test::error_of([&] { generator.fill(prompt, 1, generator.defaults()); });
  };
  EXPECT_EQ(error("one two"), "the prompt has no gap: write [MASK] where a token is missing");
  EXPECT_EQ(error("[MASK] " + counted(5)), "the prompt has 26 tokens, but the model reads 16 at once");
  const std::vector<std::string> prompts{"one"};
  EXPECT_EQ(qkv_test::error_of([&] { generator.generate(prompts, generator.defaults()); }),
            "this model does not continue texts (model.objective is masked): it fills gaps, written [MASK]");
  EXPECT_EQ(qkv_test::error_of([&] { leak_subject(generator); }),
            "this model fills gaps (model.objective is masked): each token sees all others, so there is nothing to "
            "prove");
}

TEST_F(LanguageRunTest, LearnsToWriteSpans) {
  LanguageRun run(longer(LanguageObjective::spans), run_folder());
  run.train();
  const LanguageGenerator generator(run_folder());
  GenerateOptions options = generator.defaults();
  options.temperature = 0;
  const Filled filled = generator.fill("one two three four\none [MASK] four\none two three four", 1, options);
  ASSERT_EQ(filled.spans.size(), 1u);
  EXPECT_EQ(filled.spans[0], "two three");
  EXPECT_EQ(filled.text, "one two three four\none two three four\none two three four");
  EXPECT_EQ(qkv_test::error_of([&] { generator.fill("[MASK] two [MASK]", 1, options); }),
            "the prompt has 2 gaps, but the model was trained with 1");
  EXPECT_TRUE(leaks(leak_subject(generator), random_texts(generator, 4, Rng(1))).passed());
}

TEST_F(LanguageRunTest, ABrokenMaskIsALeak) {
  LanguageConfig c = config();
  const LanguageRun run(c, "");
  const LanguageGenerator generator(run.model(), run.tokenizer(), c);
  LeakSubject subject = leak_subject(generator);
  subject.logits = [&](const Ids&, const Ids&, const Ids& ids) {
    return run.model().output()(run.model().single->features(ids, {}, qkv::Run{}, Mask::none()));
  };
  const LeakReport report = leaks(subject, random_texts(generator, 4, Rng(1)));
  EXPECT_FALSE(report.passed());
  EXPECT_FALSE(report.results[0].passed);
}

TEST_F(LanguageRunTest, RefusesTextsThatCannotBeTrainedOn) {
  LanguageConfig c = config();
  qkv_test::put_bytes(text(), "");
  EXPECT_NE(qkv_test::error_of([&] { LanguageRun(c, ""); }).find("is empty"), std::string::npos);
  qkv_test::put_bytes(text(), "one two three\n");
  EXPECT_EQ(qkv_test::error_of([&] { LanguageRun(c, ""); }),
            text() + ": the training text has 12 tokens, but a block of model.context 16 needs 17");
  c.data.epoch_batches = 3;
  EXPECT_EQ(qkv_test::error_of([&] { LanguageRun(c, ""); }),
            "data.epoch_batches is 3, but data.order is shuffled: only random blocks make epochs of any length");
  c = config();
  c.training.min_rate = 0.1;
  EXPECT_EQ(qkv_test::error_of([&] { c.check(); }),
            "training.min_rate is 0.1: it needs training.schedule cosine and at most training.rate, 0.01");
}

TEST_F(LanguageRunTest, ABlockOfTheWholeTextIsEnough) {
  qkv_test::put_bytes(text(), "one two three fou");  // 17 characters
  LanguageConfig c = config();
  c.data.valid_share = 0;
  LanguageRun run(c, "");
  EXPECT_EQ(run.task().batches(), 1);
  EXPECT_EQ(run.train().progress.step, 3);
}

TEST_F(LanguageRunTest, EveryTokenizerTrainsAndIsReadBack) {
  for (const TextTokens tokens : every<TextTokens>()) {
    if (tokens == TextTokens::pretrained) continue;  // has a folder: cli/fine_tune.sh
    LanguageConfig c = config(LanguageObjective::causal, 1);
    c.data.tokenizer = tokens;
    c.data.vocabulary = 15;
    c.model.context = 8;
    const std::string folder = run_folder(std::string(name_of(tokens)));
    LanguageRun run(c, folder);
    run.train();
    const LanguageGenerator generator(folder);
    const std::string sample = "one two\nthree";
    EXPECT_EQ(generator.tokenizer().encode(sample), run.tokenizer().encode(sample));
    EXPECT_EQ(generator.score(run.text().valid, verbatim("valid")).nats_per_token(), run.task().validate());
  }
}

TEST_F(LanguageRunTest, ATranslationModelIsRefusedAndNamed) {
  const std::string folder = run_folder("translation");
  fs::create_directories(folder);
  qkv_test::put_bytes(folder + "/config.yaml", "model:\n  kind: transformer\n");
  EXPECT_EQ(qkv_test::error_of([&] { LanguageGenerator{folder}; }),
            folder + ": holds a translation model, expected a language model");
}

TEST(LanguagePresets, AreLanguageModelsThatCanBeTrained) {
  for (const char* name : {"lm", "masked-lm", "nano-lm"}) {
    const RunConfig config = RunConfig::preset(name);
    ASSERT_EQ(config.task(), TaskKind::language) << name;
    std::get<LanguageConfig>(config.of).check();
  }
  const LanguageConfig nano = std::get<LanguageConfig>(RunConfig::preset("nano-lm").of);
  EXPECT_EQ(nano.training.epochs * nano.data.epoch_batches, 2000);
}

}  // namespace
}  // namespace qkv
