// A training in slices: the same as `qkv train`, and requests that a page may get wrong.
#include "qkv/serve/training_desk.h"

#include <gtest/gtest.h>

#include "qkv/tasks/presets.h"
#include "qkv/tasks/translation/run.h"
#include "support/files.h"

namespace qkv::serve {
namespace {

class Desk : public ::testing::Test {
 protected:
  Desk() : shelf(folder.path()), api(shelf, events), desk(folder.path() + "/training", shelf) {
    api.offer_training(desk);
  }
  Json ask(const std::string& path, const Json& body, int status = 200) {
    const ApiAnswer answer = api.answer({"POST", "/api/v1/train/" + path, "", body.dump()});
    EXPECT_EQ(answer.status, status) << answer.json;
    return Json::parse(answer.json);
  }
  std::string refusal(const std::string& path, const Json& body) { return ask(path, body, 400)["error"]; }

  qkv_test::TempFolder folder;
  ModelShelf shelf;
  EventHub events;
  Api api;
  TrainingDesk desk;
};

const Json kSmall = {{"training.epochs", 3}, {"model.hidden", 16}, {"model.ffn", 16}, {"model.layers", 1}};

TEST_F(Desk, SlicesMakeTheSameLossesAsOneRun) {
  ask("start", {{"preset", "d2l-transformer"}, {"settings", kSmall}});
  Json all = Json::array(), last;
  int slices = 0;
  do {
    last = ask("advance", {{"milliseconds", 1}, {"from", all.size()}});
    for (const Json& loss : last["losses"]) all.push_back(loss);
    ++slices;
  } while (!last["done"].get<bool>());
  EXPECT_GT(slices, 3);

  TranslationConfig config = translation_preset("d2l-transformer");
  config.data.pairs = folder.path() + "/training/pairs.tsv";
  config.training.epochs = 3;
  auto& model = std::get<TransformerConfig>(config.model);
  model.hidden = model.ffn = 16;
  model.layers = 1;
  struct Losses : Observer {
    void epoch(const Progress& p) override { list.push_back(p.epoch_loss); }
    Json list = Json::array();
  } losses;
  Observer* const watchers[] = {&losses};
  TranslationRun(config, "").train(watchers);
  EXPECT_EQ(all, losses.list);
}

TEST_F(Desk, LooksAtSentencesMeanwhileAndTheModelIsOnTheShelf) {
  const Json begun = ask("start", {{"preset", "d2l-transformer"}, {"settings", kSmall}});
  ASSERT_EQ(begun["sentences"].size(), 4);
  const Json seen = ask("look", {{"sentences", begun["sentences"]}});
  ASSERT_EQ(seen["sentences"].size(), 4);
  for (const Json& one : seen["sentences"]) {
    ASSERT_EQ(one["maps"].size(), 4);  // a layer of 4 heads
    for (const Json& row : one["maps"][0]) {
      double sum = 0;
      for (const Json& weight : row) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  while (!ask("advance", {{"milliseconds", 100}})["done"].get<bool>()) continue;
  ASSERT_EQ(shelf.models().size(), 1);
  const ShelfModel model = shelf.models()[0];
  EXPECT_EQ(model.name, begun["name"].get<std::string>());
  EXPECT_EQ(model.state, ModelState::ready);
  const auto loaded = shelf.translator(model.id);
  const std::vector<std::string> text = {begun["sentences"][0]["text"]};
  const Translation t = loaded->translate(text, loaded->defaults())[0];
  EXPECT_EQ(loaded->text(t.hypotheses[0], t.writing),
            ask("look", {{"sentences", begun["sentences"]}})["sentences"][0]["translation"].get<std::string>());
}

TEST_F(Desk, RefusesWhatAPageMayNotSet) {
  EXPECT_EQ(refusal("start", {{"settings", {{"data.pairs", "/etc/passwd"}}}}),
            "settings: data.pairs cannot be set in the page");
  EXPECT_EQ(refusal("start", {{"settings", {{"model.hidden", 100000}}}}),
            "settings.model.hidden: got 100000, expected a number of at most 256");
  EXPECT_EQ(refusal("start", {{"preset", "transformer-base"}}),
            "preset: transformer-base is not a training for the page");
  EXPECT_EQ(ask("advance", Json::object(), 409)["error"], "no training has been started");
}

TEST(DeskOfAServer, IsClosed) {
  qkv_test::TempFolder folder;
  ModelShelf shelf(folder.path());
  EventHub events;
  Api api(shelf, events);
  const ApiAnswer answer = api.answer({"POST", "/api/v1/train/start", "", "{}"});
  EXPECT_EQ(answer.status, 404);
}

}  // namespace
}  // namespace qkv::serve
