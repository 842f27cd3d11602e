// The states of a run, the training in the background, and the language of what is said about them.
#include "qkv/serve/shelf.h"

#include "qkv/io/file_lock.h"
#include "qkv/serve/gate.h"
#include "qkv/serve/trainer.h"
#include "qkv/train/callback.h"
#include "serve_fixture.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::json;

class Shelf : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  fs::path folder = serve_folder("shelf");
};

// Ends a training after a number of steps.
class StopAfter : public Observer {
 public:
  explicit StopAfter(int64_t steps) : left_(steps) {}
  void step(const Progress&) override { stop = --left_ <= 0; }
  std::atomic<bool> stop = false;

 private:
  int64_t left_;
};

TEST_F(Shelf, AnInterruptedRunSaysSoAndAnswersFromItsLastCheckpoint) {
  TranslationConfig config = small_transformer(4);
  config.training.checkpoint_seconds = 0;
  StopAfter some(3);
  Observer* const watching[] = {&some};
  TranslationRun(config, folder / "run", ExistingRun::discard).train(watching, &some.stop);
  ASSERT_FALSE(fs::exists(folder / "run/model.safetensors"));
  Served served(folder);
  const Json model = served.get("/api/v1/models")["models"][0];
  EXPECT_EQ(model["state"], "interrupted");
  EXPECT_EQ(model["usable"], true);
  EXPECT_LT(model["done"].get<double>(), 1);
  EXPECT_EQ(served.ask("/api/v1/translate", {{"model", "m1"}, {"text", "the cat sleeps ."}})["hypotheses"].size(), 1);

  // Somebody resumes it: that is visible although no file of the run has changed yet, and again when they stop.
  {
    const FileLock lock((folder / "run/train.lock").string(), verbatim("held"));
    EXPECT_TRUE(served.shelf.scan());
    EXPECT_EQ(served.get("/api/v1/models")["models"][0]["state"], "training");
    served.ask("/api/v1/translate", {{"model", "m1"}, {"text", "the cat sleeps ."}});
  }
  EXPECT_TRUE(served.shelf.scan());
  EXPECT_FALSE(served.shelf.scan());
  EXPECT_EQ(served.get("/api/v1/models")["models"][0]["state"], "interrupted");
  TranslationRun(config, folder / "run").train();
  EXPECT_TRUE(served.shelf.scan());
  EXPECT_EQ(served.get("/api/v1/models")["models"][0]["state"], "ready");
}

TEST_F(Shelf, ALockFileThatAKilledProcessLeftIsNotATraining) {
  TranslationRun(small_transformer(), folder / "run", ExistingRun::discard).train();
  std::ofstream(folder / "run/train.lock") << "12345\n";
  Served served(folder);
  EXPECT_EQ(served.get("/api/v1/models")["models"][0]["state"], "ready");
}

TEST_F(Shelf, ARunWithoutACheckpointSaysWhyItCannotAnswer) {
  TranslationRun(small_transformer(), folder / "run", ExistingRun::discard).train();
  fs::remove(folder / "run/model.safetensors");
  fs::remove_all(folder / "run/checkpoints");
  Served served(folder);
  EXPECT_EQ(served.get("/api/v1/models")["models"][0]["usable"], false);
  EXPECT_EQ(served.ask("/api/v1/translate", {{"model", "m1"}, {"text", "a"}}, 409)["error"],
            "run has no weights: its training ended before the first checkpoint");
}

TEST_F(Shelf, ABackgroundTrainingThatFailedIsSeenByAPageThatIsOpenedLater) {
  with_chinese();
  Served served(folder);
  EXPECT_TRUE(served.get("/api/v1/models")["background"].is_null());
  served.shelf.set_background(
      {BackgroundTraining::State::failed, "explorer",
       tr("the training of {name} failed: {reason}", "name"_a = "explorer", "reason"_a = "disk")});
  for (const char* path : {"/api/v1/models", "/api/v1/about"}) {
    EXPECT_EQ(served.get(path)["background"],
              (Json{{"state", "failed"}, {"name", "explorer"}, {"error", "the training of explorer failed: disk"}}));
    EXPECT_NE(served.get(path, "", Language::zh)["background"]["error"], served.get(path)["background"]["error"]);
  }
}

TEST_F(Shelf, ATrainingThatFailsSaysItsLastError) {
  Trainer trainer;
  trainer.start(
      {"/bin/sh", "-c", "echo 'qkv: note: something' >&2; echo 'qkv: error: no room' >&2; echo 'hint: x' >&2; exit 1"});
  while (trainer.running()) ::usleep(1000);
  EXPECT_TRUE(trainer.failed());
  EXPECT_EQ(trainer.last_words(), "no room");
  trainer.start({"/nonexistent"});
  while (trainer.running()) ::usleep(1000);
  EXPECT_TRUE(trainer.failed());
}

HttpRequest with(std::map<std::string, std::string> headers, std::string query = "") {
  headers.emplace("host", "h");
  return {.method = "GET", .path = "/", .query = std::move(query), .headers = std::move(headers), .body = ""};
}

TEST(AskedLanguage, IsThatOfTheAddressOrTheBrowser) {
  const auto of = [](const std::string& accept, const std::string& query = "") {
    return asked_language(with({{"accept-language", accept}}, query));
  };
  EXPECT_EQ(asked_language(with({})), Language::en);
  EXPECT_EQ(of("zh-CN,zh;q=0.9,en;q=0.8"), Language::zh);
  EXPECT_EQ(of("en-GB, zh;q=0.9"), Language::en);
  EXPECT_EQ(of("fr, zh;q=0.5, en;q=0.4"), Language::zh);
  EXPECT_EQ(of("zh;q=0.1,en;q=0.2"), Language::en);
  EXPECT_EQ(of("de"), Language::en);
  EXPECT_EQ(of(";q=,,zh;q=nan"), Language::en);
  EXPECT_EQ(of("zh", "lang=en"), Language::en);
  EXPECT_EQ(of("en", "a=1&lang=zh"), Language::zh);
  EXPECT_EQ(of("zh", "lang=xx"), Language::zh);
}

TEST(Gate, RefusesInTheLanguageOfTheBrowser) {
  with_chinese();
  const GateRules rules{.hosts = {"here"}, .token = ""};
  const std::string english = refused(with({}), rules)->body;
  const std::string chinese = refused(with({{"accept-language", "zh"}}), rules)->body;
  EXPECT_EQ(english, R"({"error":"this server does not answer to the host \"h\""})");
  EXPECT_NE(chinese, english);
  EXPECT_EQ(chinese, refused(with({}, "lang=zh"), rules)->body);
  EXPECT_NE(too_large(with({}), 10).body, too_large(with({}, "lang=zh"), 10).body);
}

TEST_F(Shelf, ErrorsOfTheApiFollowTheBrowserUnlessToldOtherwise) {
  with_chinese();
  Served served(folder);
  const auto error = [&](const std::string& body, const std::string& query, Language language) {
    return Json::parse(served.api.answer({"POST", "/api/v1/cues", query, body, language}).json)["error"]
        .get<std::string>();
  };
  const std::string english = error("{", "", Language::en), chinese = error("{", "", Language::zh);
  EXPECT_EQ(english, "the request is not JSON");
  EXPECT_NE(chinese, english);
  EXPECT_EQ(error("{", "lang=zh", Language::en), chinese);
  EXPECT_EQ(error(R"({"lang": "en"})", "", Language::zh), "want is missing");
}

}  // namespace
}  // namespace qkv::serve
