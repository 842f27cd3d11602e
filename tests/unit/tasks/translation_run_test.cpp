// Translation from a configuration to a model: resumed to the bit, at any thread count, and what a folder refuses.
#include "qkv/tasks/translation_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/io/npz.h"
#include "qkv/io/safetensors.h"
#include "qkv/tasks/translator.h"
#include "qkv/tensor/pool.h"
#include "support/near.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

class TranslationRunTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    // Digits to words, reversed: a language that attention learns in seconds.
    const char* names[] = {"nul", "un", "deux", "trois", "quatre", "cinq"};
    std::ofstream out(pairs());
    for (int a = 0; a < 6; ++a)
      for (int b = 0; b < 6; ++b)
        for (int c = 0; c < 6; ++c)
          if ((a + b + c) % 2 == 0) out << a << ' ' << b << ' ' << c << '\t' << names[c] << ' ' << names[b] << ' ' << names[a] << '\n';
  }
  void TearDown() override {
    set_threads(2);
    fs::remove_all(folder_);
  }
  std::string pairs() const { return folder_ / "pairs.tsv"; }
  std::string run_folder(const char* name = "run") const { return folder_ / name; }
  TranslationConfig config(int64_t epochs = 3) const {
    TranslationConfig c;
    c.data.pairs = pairs();
    c.data.tokenizer = "spaces";
    c.data.valid_share = 0.1;
    c.model.embed = c.model.hidden = 24;
    c.training.epochs = epochs;
    c.training.rate = 0.01;
    c.training.checkpoint_seconds = 0;
    return c;
  }
  static std::vector<float> weights(const TranslationRun& run) {
    const auto data = run.model().parameters().flat().data();
    return {data.begin(), data.end()};
  }
  fs::path folder_ = fs::temp_directory_path() / ("qkv-translation-" + std::to_string(::getpid()));
};

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.hint().empty() ? e.what() : text(e.what(), " | ", e.hint());
  }
  return "";
}

TEST_F(TranslationRunTest, ResumesToTheBitAtAnyThreadCountWithEveryKeeping) {
  for (const char* keeping : {"best", "average_last", "average_decay"}) {
    TranslationConfig c = config(4);
    if (keeping == std::string("average_last")) c.training.average_last = 2;
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
  // Rows of weights over the sentence's own tokens, its end included.
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
  // A forced translation is as likely as the search said.
  const auto forced = translator.force({{"1 2 3"}, {"trois deux un"}});
  EXPECT_NEAR(forced[0].forced.log_probability(), one_by_one[0].hypotheses[0].log_probability, 1e-5);
}

TEST_F(TranslationRunTest, BatchMatesChangeNothingForAnEncoderThatRunsThroughThePadding) {
  TranslationConfig c = config(1);
  c.model.skip_padding = false;
  c.training.num_steps = 5;
  TranslationRun run(c, "");
  const Translator translator(run.model(), run.tokenizers(), run.config());
  const SentencePairs pairs{{"1 2 3", "4", "1 2 3 4 5 0 1 2 3", "5 4 3 2 1 0", "0 1 2 3 4 5"}, {"un", "deux", "trois", "un", "un"}};
  const auto together = translator.translate(pairs.source, translator.defaults());
  const auto forced = translator.force(pairs);
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    const auto alone = translator.translate(std::span(&pairs.source[i], 1), translator.defaults());
    EXPECT_EQ(alone[0].hypotheses[0].tokens, together[i].hypotheses[0].tokens) << i;
    EXPECT_EQ(alone[0].hypotheses[0].log_probability, together[i].hypotheses[0].log_probability) << i;
    EXPECT_EQ(translator.force({{pairs.source[i]}, {pairs.target[i]}})[0].forced.log_probabilities, forced[i].forced.log_probabilities) << i;
  }
}

TEST_F(TranslationRunTest, AWideBeamDecodesFewerSentencesAtOnceNotInAllTheMemory) {
  std::ofstream out(pairs());
  for (int i = 0; i < 3000; ++i) out << i % 7 << '\t' << "w" << i << '\n';
  out.close();
  TranslationConfig c = config(0);
  c.data.valid_share = 0, c.data.min_count = 1;
  c.model.embed = c.model.hidden = 4;
  TranslationRun run(c, "");
  const Translator translator(run.model(), run.tokenizers(), run.config());
  const std::vector<std::string> lines(56, "1 2 3");
  Pool pool;
  const PoolScope scope(pool);
  const auto found = translator.translate(lines, {.beam = 1000, .max_length = 2, .rows = 56});
  EXPECT_LT(pool.bytes(), int64_t{1} << 30) << "56 sentences with 1000 hypotheses of 3004 scores are 0.7 GB, twice";
  for (const Translation& t : found) EXPECT_EQ(t.hypotheses[0].tokens, found[0].hypotheses[0].tokens);
}

TEST_F(TranslationRunTest, FourBatchesOf16PairsAreOneOf64) {
  // Sentences of different lengths, so that batches have different counts of tokens.
  std::ofstream more(pairs());
  for (int i = 0; i < 128; ++i) {
    for (int k = 0; k <= i % 7; ++k) more << (i + k) % 6 << ' ';
    more << "9\t";
    for (int k = 0; k <= i % 5; ++k) more << 'w' << (i * k) % 6 << ' ';
    more << "z\n";
  }
  more.close();
  const auto trained = [&](const char* loss, int64_t rows, int64_t accumulate, double rate = 0.01) {
    TranslationConfig c = config(2);
    c.data.valid_share = 0, c.data.min_count = 1;
    c.model.dropout = 0;
    c.training.schedule = "cosine", c.training.clip = 0;
    c.training.loss = loss, c.training.batch_rows = rows, c.training.accumulate = accumulate, c.training.rate = rate;
    TranslationRun run(c, "");
    const FitResult result = run.train();
    EXPECT_EQ(result.progress.steps, 2 * (128 / (rows * accumulate)));
    return std::pair{weights(run), result.progress.epoch_loss};
  };
  for (const char* loss : {"token", "book"}) {
    const auto [whole, whole_loss] = trained(loss, 64, 1);
    const auto [parts, parts_loss] = trained(loss, 16, 4);
    const auto [start, start_loss] = trained(loss, 64, 1, 0);
    ASSERT_EQ(whole.size(), parts.size());
    double worst = 0, moved = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      worst = std::max(worst, std::abs(double{whole[i]} - parts[i]));
      moved = std::max(moved, std::abs(double{whole[i]} - start[i]));
    }
    EXPECT_LT(worst, 1e-4) << loss;  // Adam divides by the root of small squares: rounding grows with 1 / |g|
    EXPECT_GT(moved, 1e-2) << loss;
    EXPECT_NEAR(whole_loss, parts_loss, 1e-6 * whole_loss) << loss;
  }
}

TEST_F(TranslationRunTest, AnAccumulatedGradientIsThatOfAllItsTokens) {
  for (const char* loss : {"token", "book"})
    for (const bool mask : {true, false}) {
      TranslationConfig c = config();
      c.data.valid_share = 0;
      c.model.dropout = 0;
      c.training.loss = loss, c.training.mask_loss = mask;
      TranslationRun run(c, "");
      const auto& text = run.text();
      const auto pairs_of = encode_pairs(text.train, text.tokenizers.source, text.tokenizers.target);
      std::vector<IdPair> ids(pairs_of.begin(), pairs_of.begin() + 64);
      for (size_t i = 0; i < ids.size(); i += 3) ids[i].target.erase(ids[i].target.begin());  // other counts in other batches
      for (size_t i = 0; i < 16; ++i) ids[i].target.resize(1);
      const auto gradient = [&](int64_t rows) {
        c.training.batch_rows = rows;
        TranslationBatches batches(ids, text.tokenizers.source.pad(), text.tokenizers.target.pad(), text.tokenizers.target.bos(),
                                   {.rows = rows, .fixed_steps = mask ? 0 : 10, .shuffle = false});
        const TranslationTask task(run.model(), c.training, batches, text.tokenizers.target.pad());
        std::vector<TranslationBatch> all;
        for (int64_t b = 0; b < task.batches(); ++b) all.push_back(task.batch(0, b));
        Shards shards(run.model().parameters());
        detail::gradients(shards, task, all, qkv::Run{.training = true});
        return shards.gradient().copied();
      };
      const Tensor whole = gradient(64), parts = gradient(16);
      qkv_test::expect_near_largest(parts, whole, 1e-6, qkv::text(loss, mask ? ", masked" : ""));
    }
}

TEST_F(TranslationRunTest, TwoTrainingsInOneFolderAreRefused) {
  const TranslationConfig c = config(1);
  const std::string refused = qkv::text(run_folder(), ": another training is at work in this folder (process ", ::getpid(), ")");
  {
    TranslationRun first(c, run_folder());
    EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()); }), refused);
    EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder(), OldRun::removed); }), refused);
    first.train();
    EXPECT_TRUE(fs::exists(run_folder() + "/model.safetensors"));
  }
  EXPECT_FALSE(fs::exists(run_folder() + "/train.lock"));
  EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()); }), "");
}

TEST_F(TranslationRunTest, AFolderOfAnotherConfigurationIsRefused) {
  TranslationRun(config(1), run_folder()).train();
  TranslationConfig other = config(1);
  other.model.hidden = 16;
  EXPECT_EQ(error_of([&] { TranslationRun(other, run_folder()); }),
            run_folder() + "/config.yaml: model.hidden is 24, but 16 was asked for | --restart begins again; -o names another folder");
  // More epochs of the same are the same run gone on with.
  TranslationRun longer(config(2), run_folder());
  longer.train();
  TranslationRun whole(config(2), "");
  whole.train();
  EXPECT_EQ(weights(longer), weights(whole));
}

TEST_F(TranslationRunTest, AnOldRunIsRemovedOnlyWhenTheNewOneCanBegin) {
  TranslationRun(config(1), run_folder()).train();
  const auto files = [&] {
    std::set<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(run_folder())) out.insert(entry.path());
    return out;
  };
  const auto before = files();
  TranslationConfig missing = config(1);
  missing.data.pairs = run_folder("nothing.tsv");
  EXPECT_NE(error_of([&] { TranslationRun(missing, run_folder(), OldRun::removed); }), "");
  EXPECT_EQ(files(), before);
  TranslationConfig other = config(1);
  other.model.hidden = 16;
  TranslationRun again(other, run_folder(), OldRun::removed);
  EXPECT_FALSE(fs::exists(run_folder() + "/checkpoints/last.safetensors"));
  EXPECT_EQ(again.train().progress.steps_here, 2);
}

TEST_F(TranslationRunTest, WeightsWithoutTheirConfigurationAreNotGoneOnWith) {
  TranslationRun(config(1), run_folder()).train();
  fs::remove(run_folder() + "/config.yaml");
  fs::remove(run_folder() + "/model.safetensors");
  EXPECT_EQ(error_of([&] { TranslationRun(config(2), run_folder()); }),
            run_folder() + ": has checkpoints/best.safetensors but no config.yaml: it is what was left of a run | --restart removes it; -o names another folder");
  EXPECT_FALSE(fs::exists(run_folder() + "/config.yaml"));
  TranslationRun again(config(2), run_folder(), OldRun::removed);
  TranslationRun whole(config(2), "");
  again.train(), whole.train();
  EXPECT_EQ(weights(again), weights(whole));
}

TEST_F(TranslationRunTest, OtherSentencesUnderTheSameNameAreNotGoneOnWith) {
  for (const char* tokenizer : {"spaces", "book"}) {
    SetUp();
    TranslationConfig c = config(1);
    c.data.tokenizer = tokenizer, c.data.valid_share = 0;
    TranslationRun(c, run_folder(tokenizer)).train();
    std::string content;
    std::getline(std::ifstream(pairs()), content, '\0');
    std::swap(content[0], content[content.find('5')]);  // as many words, as many batches
    std::ofstream(pairs()) << content;
    c.training.epochs = 2;
    EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder(tokenizer)).train(); }),
              run_folder(tokenizer) + "/checkpoints/last.safetensors: was trained on other sentences than the data files hold now"
                                      " | --restart begins again; -o names another folder");
  }
}

TEST_F(TranslationRunTest, ACheckpointWithADamagedAverageIsRefused) {
  TranslationConfig c = config(2);
  c.training.average_last = 2;
  TranslationRun(c, run_folder()).train();
  const std::string file = run_folder() + "/checkpoints/last.safetensors";
  const Checkpoint good = load_checkpoint(file);
  Checkpoint bad = good;
  bad.tensors["companion.average"] = zeros({7});
  save_checkpoint(file, bad);
  EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()).train(); }),
            text(file, ": \"companion.average\" has shape (7,), the model needs ", good.tensors.at("companion.average").shape()));
  bad.tensors.erase("companion.average");
  save_checkpoint(file, bad);
  EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()).train(); }), file + ": 2 epochs are averaged, but the average is missing");
}

TEST_F(TranslationRunTest, ACheckpointOfAnotherModelIsRefusedByItsFirstDifference) {
  TranslationRun run(config(1), run_folder());
  run.train();
  TranslationModelConfig other = config(1).model;
  other.hidden = 16;
  TranslationModel model(other, run.tokenizers().source.size(), run.tokenizers().target.size(), Rng(1));
  const std::string file = run_folder() + "/model.safetensors", message = error_of([&] { model.load(file); });
  EXPECT_NE(message.find("the configuration says"), std::string::npos) << message;
  EXPECT_NE(message.find(file), std::string::npos);
  other = config(1).model;
  other.attention = "none";
  TranslationModel baseline(other, run.tokenizers().source.size(), run.tokenizers().target.size(), Rng(1));
  EXPECT_NE(error_of([&] { baseline.load(file); }), "");
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

TEST_F(TranslationRunTest, MorePatienceGoesOnWithARunThatEndedEarly) {
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

TEST_F(TranslationRunTest, TheEnglishPresetSplitsAsItsBookAndResumesFromItsFolder) {
  std::ofstream out(folder_ / "fra.txt");
  for (int i = 0; i < 700; ++i) out << "Go " << i % 20 << ".\tVa " << i % 30 << " !\n";
  out.close();
  TranslationConfig c = translation_preset("d2l-en-bahdanau");
  c.data.pairs = folder_ / "fra.txt";
  c.model.embed = c.model.hidden = 16;
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
  c.training.keep = "last";
  TranslationRun last(c, run_folder("last"));
  last.train();
  const auto weight = [&](const char* run, const char* file) {
    const Tensor t = SafetensorsFile(run_folder(run) + file).tensor("output.weight");
    return std::vector<float>(t.data().begin(), t.data().end());
  };
  EXPECT_EQ(weight("best", "/model.safetensors"), weight("best", "/checkpoints/best.safetensors"));
  EXPECT_EQ(weight("last", "/model.safetensors"), weight("last", "/checkpoints/last.safetensors"));
  EXPECT_NE(weight("best", "/model.safetensors"), weight("last", "/model.safetensors")) << "the last epoch was the best one: " << *result.progress.valid_loss;
}

TEST_F(TranslationRunTest, ARunningAverageIsTheModelAndIsWhatIsValidated) {
  struct Weights : Observer {
    explicit Weights(const TranslationRun*& r) : run(r) {}
    void epoch(const Progress& p) override { after.push_back(weights(*run)), valid = *p.valid_loss; }
    const TranslationRun*& run;
    std::vector<std::vector<float>> after;
    double valid = 0;
  };
  const TranslationRun* under_way = nullptr;
  Weights seen(under_way);
  Observer* list[] = {&seen};
  TranslationConfig c = config(3);
  c.training.average_decay = 0.75, c.training.keep = "last";
  TranslationRun run(c, "");
  under_way = &run;
  run.train(list);
  const std::vector<float> kept = weights(run);
  for (size_t i = 0; i < kept.size(); ++i) {
    const double two = 0.75 * seen.after[0][i] + 0.25 * seen.after[1][i];
    ASSERT_NEAR(kept[i], 0.75 * two + 0.25 * seen.after[2][i], 1e-6) << i;
  }
  // The weights go their way as without it, and the best average so far is kept where that is asked for.
  c.training.average_decay = 0;
  TranslationRun plain(c, "");
  under_way = &plain, seen.after.clear();
  const double averaged_loss = seen.valid;
  plain.train(list);
  EXPECT_EQ(seen.after.back(), weights(plain));
  EXPECT_GT(std::abs(seen.valid - averaged_loss), 1e-4) << "the average and the last weights are not alike";
  c.training.average_decay = 0.75, c.training.keep = "best";
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
  for (const char* scorer : {"none", "dot", "scaled-dot", "bilinear", "cosine"})
    EXPECT_LT(loss([&](auto& c) { c.model.attention = scorer; }), 2.5) << scorer;
  EXPECT_LT(loss([](auto& c) { c.model.cell = "lstm"; }), 2.5);
  EXPECT_LT(loss([](auto& c) { c.model.bidirectional = true; }), 2.5);
  EXPECT_LT(loss([](auto& c) { c.model.layers = 2, c.model.embed_dropout = 0.2; }), 2.5);
  EXPECT_LT(loss([](auto& c) { c.training.label_smoothing = 0.1; }), 3.0);
  EXPECT_LT(loss([](auto& c) { c.training.mask_loss = false; }), 2.5);
  EXPECT_GT(loss([](auto& c) { c.training.feed_back = 1; }), plain) << "its own predictions are worse inputs than the truth";
  EXPECT_LT(loss([](auto& c) { c.training.batch_tokens = 100; }), 2.5);
  EXPECT_LT(loss([](auto& c) { c.data.tokenizer = "bpe", c.data.vocabulary = 28, c.data.shared_vocabulary = true; }), 3.5);
  EXPECT_LT(loss([](auto& c) { c.data.reverse = true; }), 2.5);
  for (const char* schedule : {"warmup", "cosine", "step"})
    EXPECT_LT(loss([&](auto& c) { c.training.schedule = schedule, c.training.warmup = 2; }), 2.6) << schedule;
}

TEST_F(TranslationRunTest, RefusesSettingsThatDisagree) {
  const auto refused = [&](auto&& change) {
    TranslationConfig c = config();
    change(c);
    return error_of([&] { c.check(); });
  };
  EXPECT_EQ(refused([](auto& c) { c.data.pairs = ""; }),
            "there is no data: give --data FILE (tab-separated pairs, or en-fr), or --source and --target");
  EXPECT_EQ(refused([](auto& c) { c.data.source = "a"; }), "data.pairs and data.source exclude each other");
  EXPECT_EQ(refused([](auto& c) { c.data.valid_share = 0, c.training.patience = 3; }), "training.patience is 3, but there is no validation data");
  EXPECT_EQ(refused([](auto& c) { c.data.tokenizer = "book", c.training.patience = 3; }),
            "data.tokenizer book has no validation data: the book trains on all pairs");
  EXPECT_EQ(refused([](auto& c) { c.data.tokenizer = "book", c.data.valid_share = 0, c.data.reverse = true; }),
            "data.tokenizer book translates from the first side into the second: data.reverse is true");
  EXPECT_EQ(refused([](auto& c) { c.data.tokenizer = "book-en"; }),
            "data.tokenizer book-en reads 641 pairs, 129 of them for validation: data.limit and other validation data do not apply");
  EXPECT_EQ(refused([](auto& c) { c.training.average_last = 1, c.training.average_decay = 0.5; }),
            "training.average_decay and training.average_last exclude each other");
  EXPECT_EQ(refused([](auto& c) { c.training.average_last = 9; }), "training.average_last is 9, but there are only 3 epochs (--average-last 0 averages none)");
}

TEST(TranslationPreset, UnknownOnesAreRefusedWithASuggestion) {
  EXPECT_EQ(error_of([] { translation_preset("d2l-bahdanaw"); }),
            "unknown preset \"d2l-bahdanaw\": expected one of d2l-seq2seq, d2l-bahdanau, d2l-transformer, "
            "d2l-en-seq2seq, d2l-en-bahdanau, d2l-en-transformer, bahdanau, transformer, transformer-tiny, transformer-base | did you mean \"d2l-bahdanau\"?");
  for (const std::string& name : translation_presets()) EXPECT_EQ(translation_preset(name).preset, name);
}

}  // namespace
}  // namespace qkv
