// What a folder, a configuration or a preset refuses, and the errors.
#include "qkv/io/safetensors.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/run_config.h"
#include "unit/tasks/translation_fixture.h"

namespace qkv {
namespace {

TEST_F(TranslationRunTest, TwoTrainingsInOneFolderAreRefused) {
  const TranslationConfig c = config(1);
  const std::string refused =
      qkv::text(run_folder(), ": another process is training in this folder (process ", ::getpid(), ")");
  {
    TranslationRun first(c, run_folder());
    EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()); }), refused);
    EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder(), ExistingRun::discard); }), refused);
    first.train();
    EXPECT_TRUE(fs::exists(run_folder() + "/model.safetensors"));
  }
  EXPECT_FALSE(fs::exists(run_folder() + "/train.lock"));
  EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()); }), "");
}

TEST_F(TranslationRunTest, AFolderOfAnotherConfigurationIsRefused) {
  TranslationRun(config(1), run_folder()).train();
  TranslationConfig other = config(1);
  other.seq2seq().hidden = 16;
  EXPECT_EQ(
      error_of([&] { TranslationRun(other, run_folder()); }),
      run_folder() +
          "/config.yaml: model.hidden is 24, but 16 was requested | --hidden 24 resumes it; --restart starts over; -o "
          "names another folder");
  // More epochs resume the same run; fewer are refused.
  TranslationRun longer(config(2), run_folder());
  longer.train();
  TranslationRun whole(config(2), "");
  whole.train();
  EXPECT_EQ(weights(longer), weights(whole));
}

TEST_F(TranslationRunTest, ARunIsNotMadeShorter) {
  TranslationRun(config(2), run_folder()).train();
  EXPECT_EQ(error_of([&] { TranslationRun(config(1), run_folder()); }),
            run_folder() +
                "/config.yaml: training.epochs is 2, but 1 was requested: a run can be made longer, but not shorter | "
                "--epochs 2 resumes it; --restart starts over; -o names another folder");
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
  EXPECT_NE(error_of([&] { TranslationRun(missing, run_folder(), ExistingRun::discard); }), "");
  EXPECT_EQ(files(), before);
  TranslationConfig other = config(1);
  other.seq2seq().hidden = 16;
  TranslationRun again(other, run_folder(), ExistingRun::discard);
  EXPECT_FALSE(fs::exists(run_folder() + "/checkpoints/last.safetensors"));
  EXPECT_EQ(again.train().progress.steps_here, 2);
}

TEST_F(TranslationRunTest, WeightsWithoutTheirConfigurationAreNotResumed) {
  TranslationRun(config(1), run_folder()).train();
  fs::remove(run_folder() + "/config.yaml");
  fs::remove(run_folder() + "/model.safetensors");
  EXPECT_EQ(
      error_of([&] { TranslationRun(config(2), run_folder()); }),
      run_folder() +
          ": has checkpoints/best.safetensors but no config.yaml: the rest of a run is missing | --restart removes "
          "it; -o names another folder");
  EXPECT_FALSE(fs::exists(run_folder() + "/config.yaml"));
  TranslationRun again(config(2), run_folder(), ExistingRun::discard);
  TranslationRun whole(config(2), "");
  again.train();
  whole.train();
  EXPECT_EQ(weights(again), weights(whole));
}

TEST_F(TranslationRunTest, DifferentSentencesUnderTheSameNameAreNotResumed) {
  for (const TokenizerKind tokenizer : {TokenizerKind::spaces, TokenizerKind::book}) {
    SetUp();
    const std::string folder = run_folder(text(tokenizer).c_str());
    TranslationConfig c = config(1);
    c.data.tokenizer = tokenizer;
    c.data.valid_share = 0;
    TranslationRun(c, folder).train();
    std::string content;
    std::getline(std::ifstream(pairs()), content, '\0');
    std::swap(content[0], content[content.find('5')]);  // the same number of words and batches
    std::ofstream(pairs()) << content;
    c.training.epochs = 2;
    EXPECT_EQ(error_of([&] { TranslationRun(c, folder).train(); }),
              folder +
                  "/checkpoints/last.safetensors: was trained on data that differs from the files as they are now"
                  " | --restart starts over; -o names another folder");
  }
}

TEST_F(TranslationRunTest, AFolderFromBeforeNormalisationStaysAsItWas) {
  TranslationConfig c = config(1);
  c.data.tokenizer = TokenizerKind::bpe;
  c.data.vocabulary = 28;
  c.data.shared_vocabulary = true;
  c.data.normalize = Normalization::none;
  TranslationRun(c, run_folder()).train();
  const std::string path = run_folder() + "/config.yaml";
  std::string content, old;
  std::getline(std::ifstream(path), content, '\0');
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size() - 1) + 1;
    const std::string line = content.substr(at, end - at);
    if (line.find("normalize") == std::string::npos) old += line;
    at = end;
  }
  ASSERT_LT(old.size(), content.size());
  std::ofstream(path) << old;
  EXPECT_EQ(read_run_config(path).data.normalize, Normalization::none);
  c.training.epochs = 2;
  TranslationRun(c, run_folder()).train();
  c.data.normalize = Normalization::nfkc;
  EXPECT_EQ(
      error_of([&] { TranslationRun(c, run_folder()); }),
      path +
          ": data.normalize is none, but nfkc was requested | --normalize none resumes it; --restart starts over; -o "
          "names another folder");
  // Words are not normalised, so the setting does not apply to them.
  std::ofstream(path) << "data:\n  tokenizer: spaces\n";
  EXPECT_EQ(read_run_config(path).data.normalize, Normalization::nfkc);
}

TEST_F(TranslationRunTest, ACheckpointWithADamagedAverageIsRefused) {
  TranslationConfig c = config(2);
  c.training.average_last = 1;
  TranslationRun(c, run_folder()).train();
  const std::string file = run_folder() + "/checkpoints/last.safetensors";
  const Checkpoint good = load_checkpoint(file);
  Checkpoint bad = good;
  bad.tensors["companion.average"] = zeros({7});
  save_checkpoint(file, bad);
  EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()).train(); }),
            text(file, ": \"companion.average\" has shape (7,), but the model needs ",
                 good.tensors.at("companion.average").shape()));
  bad.tensors.erase("companion.average");
  save_checkpoint(file, bad);
  EXPECT_EQ(error_of([&] { TranslationRun(c, run_folder()).train(); }), file + ": has no tensor \"companion.average\"");
}

TEST_F(TranslationRunTest, ACheckpointOfAnotherModelIsRefusedByItsFirstDifference) {
  TranslationRun run(config(1), run_folder());
  run.train();
  TranslationConfig other = config(1);
  other.seq2seq().hidden = 16;
  const std::string file = run_folder() + "/model.safetensors";
  const auto load = [&] { TranslationModel(other, run.tokenizers().sizes(), file); };
  const std::string message = error_of(load);
  EXPECT_NE(message.find("configuration and vocabularies say"), std::string::npos) << message;
  EXPECT_NE(message.find(file), std::string::npos);
  other = config(1);
  other.seq2seq().attention = ScorerKind::none;
  EXPECT_NE(error_of(load), "");
  other = config(1);
  other.seq2seq().hidden = 65536;  // hundreds of gigabytes: refused before they are allocated
  EXPECT_NE(error_of(load).find("configuration and vocabularies say"), std::string::npos);
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
  EXPECT_EQ(refused([](auto& c) {
              c.data.valid_share = 0;
              c.training.patience = 3;
            }),
            "training.patience is 3, but there is no validation data");
  EXPECT_EQ(refused([](auto& c) {
              c.data.tokenizer = TokenizerKind::book;
              c.training.patience = 3;
            }),
            "data.tokenizer book has no validation data: the book trains on all pairs");
  EXPECT_EQ(refused([](auto& c) {
              c.data.tokenizer = TokenizerKind::book;
              c.data.valid_share = 0;
              c.data.reverse = true;
            }),
            "data.tokenizer book translates from the first side into the second, but data.reverse is true");
  EXPECT_EQ(
      refused([](auto& c) { c.data.tokenizer = TokenizerKind::book_en; }),
      "data.tokenizer book-en reads 641 pairs, 129 of them for validation: data.limit and other validation data do "
      "not apply");
  EXPECT_EQ(refused([](auto& c) {
              c.training.average_last = 0.5;
              c.training.average_decay = 0.5;
            }),
            "training.average_decay and training.average_last exclude each other (--average-last 0 turns it off)");
  EXPECT_EQ(refused([](auto& c) { c.model = TransformerConfig{.hidden = 30}; }),
            "model.hidden 30 is not divisible by model.heads 4");
  EXPECT_EQ(refused([](auto& c) {
              c.seq2seq().bidirectional = true;
              c.seq2seq().attention = ScorerKind::dot;
            }),
            "model.attention dot needs states of equal width, but model.bidirectional is true");
  EXPECT_EQ(refused([](auto& c) { c.book.positions = true; }),
            "book.positions is true, but model.kind is seq2seq, which has no positions");
}

TEST(TrainingConfig, AveragesItsShareOfTheEpochsButNeverOneAlone) {
  const auto averaged = [](int64_t epochs, double share) {
    TrainingConfig c;
    c.epochs = epochs;
    c.average_last = share;
    return c.averaged_epochs();
  };
  EXPECT_EQ(averaged(200, 0.1), 20);
  EXPECT_EQ(averaged(45, 0.11), 5);
  EXPECT_EQ(averaged(15, 0.1), 2);
  EXPECT_EQ(averaged(14, 0.1), 0);
  EXPECT_EQ(averaged(1, 1), 0);
  EXPECT_EQ(averaged(3, 1), 3);
  EXPECT_EQ(averaged(200, 0), 0);
}

TEST(TranslationPreset, UnknownOnesAreRefusedWithASuggestion) {
  EXPECT_EQ(error_of([] { translation_preset("d2l-bahdanaw"); }),
            text("unknown preset \"d2l-bahdanaw\": expected one of ", listed(preset_names()),
                 " | did you mean \"d2l-bahdanau\"?"));
}

TEST(TranslationPreset, EveryFileIsAConfigurationThatCanBeTrained) {
  const std::vector<std::string> names = preset_names();
  for (const char* name : {"bahdanau", "d2l-bahdanau", "d2l-en-transformer", "multi30k-en-de", "transformer-base"})
    EXPECT_TRUE(std::ranges::count(names, name)) << name;
  for (const std::string& name : names) {
    RunConfig c = RunConfig::preset(name);
    if (!c.has_data()) c.settings().find(c.sources()[0]).set("pairs.tsv", "");
    EXPECT_EQ(error_of([&] { std::visit([](const auto& task) { task.check(); }, c.of); }), "") << name;
    EXPECT_TRUE(fs::exists(text(QKV_SOURCE_DIR "/presets/", name, ".yaml"))) << name;
  }
}

TEST(TranslationPreset, TheBooksHaveTheBooksSettings) {
  const TranslationConfig c = translation_preset("d2l-transformer");
  EXPECT_EQ(c.transformer().hidden, 32);
  EXPECT_EQ(c.transformer().init, TransformerConfig::Init::book);
  EXPECT_EQ(c.book.loss, LossUnit::book);
  EXPECT_EQ(c.training.epochs, 200);
  EXPECT_EQ(translation_preset("d2l-en-transformer").transformer().dropout, 0.2f);
  EXPECT_FALSE(translation_preset("d2l-bahdanau").seq2seq().skip_padding);
}

}  // namespace
}  // namespace qkv
