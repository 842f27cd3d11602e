// The explorer's API: its numbers are those of the library, and bad requests get one clear line.
#include "qkv/serve/api.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/regression/bandwidth.h"
#include "qkv/serve/gate.h"
#include "qkv/tasks/translation/run.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::json;

class ApiTest : public testing::Test {
 protected:
  Json ask(const std::string& path, const Json& body, int status = 200) { return ask_text(path, body.dump(), status); }
  Json ask_text(const std::string& path, const std::string& body, int status = 200) {
    const ApiAnswer answer = api.answer({body.empty() ? "GET" : "POST", path, "", body});
    EXPECT_EQ(answer.status, status) << answer.json;
    return Json::parse(answer.json);
  }
  ModelShelf shelf{testing::TempDir() + "no-models"};
  EventHub events;
  Api api{shelf, events};
};

TEST_F(ApiTest, RegressionGivesThePredictionsOfTheLibrary) {
  const std::vector<double> x = {0, 0.5, 1.5, 2, 4}, y = {1, 0, 2, 3, -1};
  const Json out =
      ask("/api/v1/regress",
          {{"x", x}, {"y", y}, {"bandwidth", 0.7}, {"at", 1.25}, {"grid", {{"low", -1}, {"high", 5}, {"count", 7}}}});
  const KernelRegression expected(Points::of(x), Points::of(y), {.bandwidth = {0.7}});
  EXPECT_EQ(out["fit"].get<std::vector<double>>(), expected.predict(Points::of({-1, 0, 1, 2, 3, 4, 5})).values.values);
  EXPECT_EQ(out["at"]["prediction"], expected.predict(Points::of({1.25})).values.values[0]);
  EXPECT_EQ(out["leave_one_out"]["now"], expected.leave_one_out_score());
}

TEST_F(ApiTest, LearnedWidthsAreThoseOfTheLibraryEpochByEpoch) {
  const std::vector<double> x = {0, 1, 2, 3}, y = {0, 1, 4, 9};
  const Json out = ask("/api/v1/regress/learn", {{"x", x}, {"y", y}, {"start", 1}, {"rate", 0.001}, {"epochs", 3}});
  const Learned expected =
      learn_bandwidth(Points::of(x), Points::of(y), Rng(0), {.rate = 0.001, .epochs = 3, .start = 1});
  EXPECT_EQ(out["w"].size(), 3);
  EXPECT_EQ(out["w"][2], expected.w[0]);
  EXPECT_EQ(out["loss"].get<std::vector<double>>(), expected.losses);
}

TEST_F(ApiTest, AttendGivesTheWeightsOfTheLibraryAndNamesEmptyRows) {
  const Json out = ask(
      "/api/v1/attend",
      {{"score", "scaled-dot"}, {"q", {{1, 2}, {0, 1}}}, {"k", {{1, 0}, {0, 3}}}, {"v", {{1}, {2}}}, {"lens", {2, 0}}});
  const Tensor q({2, 2}, {1, 2, 0, 1}), k({2, 2}, {1, 0, 0, 3}), v({2, 1}, {1, 2});
  const Attended expected = attend(ScaledDot{}, q, k, v, Mask::valid_lens(Ids({1, 2}, {2, 0})));
  const Json& weights = out["steps"][3]["values"];
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j)
      EXPECT_EQ(weights[static_cast<size_t>(i)][static_cast<size_t>(j)].get<float>(),
                expected.weights.row(0, 0, i).at({j}));
  EXPECT_EQ(out["empty_rows"], Json({1}));
  EXPECT_EQ(out["book_weights"][1], Json({0.5, 0.5}));
}

TEST_F(ApiTest, OnlyPositionsThatKnowTheOrderNoticeAShuffle) {
  EXPECT_TRUE(
      ask("/api/v1/positions", {{"kind", "none"}, {"length", 8}, {"width", 8}})["outputs"]["permuted"].get<bool>());
  EXPECT_FALSE(ask("/api/v1/positions", {{"kind", "sinusoidal"}, {"length", 8}, {"width", 8}})["outputs"]["permuted"]
                   .get<bool>());
}

TEST_F(ApiTest, BadRequestsSayWhatWasExpected) {
  const auto error = [&](const std::string& path, const std::string& body, int status) {
    return ask_text(path, body, status)["error"].get<std::string>();
  };
  EXPECT_EQ(error("/api/v1/cues", "{", 400), "the request is not JSON");
  EXPECT_EQ(error("/api/v1/cues", "[1]", 400), "the request must be a JSON object");
  EXPECT_EQ(error("/api/v1/cues", R"({"want": [1e999, 0]})", 400), "a number in the request does not fit in a double");
  EXPECT_EQ(error("/api/v1/cues", std::string(40, '['), 400), "the JSON is nested more than 32 levels deep");
  EXPECT_EQ(error("/api/v1/cues", "{}", 400), "want is missing");
  EXPECT_EQ(error("/api/v1/regress", R"({"x": [1], "y": [1]})", 400), "x: at least 2 points are needed, got 1");
  EXPECT_EQ(error("/api/v1/translate", R"({"model": "../../etc", "text": "a"})", 404), "there is no model ../../etc");
  EXPECT_EQ(error("/api/v1/map", R"({"session": "k7"})", 404), "there is no session k7");
  EXPECT_EQ(error("/api/v1/nothing", "{}", 404), "there is no /api/v1/nothing");
  EXPECT_EQ(error("/api/v1/about", "{}", 405), "POST is not for /api/v1/about");
}

TEST(ApiTranslate, GivesTheHypothesesOfTheTranslator) {
  const std::string folder = testing::TempDir() + "serve-models";
  TranslationConfig config;
  config.set_kind(ModelKind::transformer);
  config.parse(
      "data: {pairs: en-fr, tokenizer: spaces, min_count: 1, corpus_size: 200}\n"
      "model: {hidden: 16, layers: 1, heads: 2, ffn: 16}\ntraining: {epochs: 1}\n",
      "test");
  TranslationRun(config, folder + "/small", ExistingRun::discard).train();
  ModelShelf shelf(folder);
  EXPECT_TRUE(shelf.scan());
  EXPECT_FALSE(shelf.scan());
  EventHub events;
  Api api(shelf, events);
  const std::string text = "the cat sleeps .";
  const auto ask = [&](const std::string& path, Json body) {
    body["model"] = "m1";
    body["text"] = text;
    const ApiAnswer answer = api.answer({"POST", path, "", body.dump()});
    EXPECT_EQ(answer.status, 200) << answer.json;
    return Json::parse(answer.json);
  };
  const Json out = ask("/api/v1/translate", {{"beam", 3}, {"top", 2}, {"tree", true}});
  const Translator translator(folder + "/small");
  TranslateOptions options = translator.defaults();
  options.beam = options.best = 3;
  const std::vector<std::string> one = {text};
  const Translation expected = translator.translate(one, options)[0];
  ASSERT_EQ(out["hypotheses"].size(), expected.hypotheses.size());
  for (size_t i = 0; i < expected.hypotheses.size(); ++i) {
    const Json& h = out["hypotheses"][i];
    EXPECT_EQ(h["log_probability"], expected.hypotheses[i].log_probability);
    EXPECT_EQ(h["text"], translator.text(expected.hypotheses[i], expected.writing));
    double sum = 0;
    for (const Json& step : h["steps"]) {
      EXPECT_EQ(step["top"].size(), 2);
      sum += step["log_probability"].get<double>();
    }
    EXPECT_NEAR(sum, expected.hypotheses[i].log_probability, 1e-4);
  }
  EXPECT_GE(out["tree"].size(), expected.hypotheses.size());

  // A rectangle is a part of the whole map, and pooling takes the largest.
  const Json maps = ask("/api/v1/maps", {});
  const Json& cross = maps["maps"].back()["values"];
  const Json whole = ask("/api/v1/map", {{"session", maps["session"]}, {"name", "cross"}, {"head", 2}});
  EXPECT_EQ(whole["values"], cross);
  const Json cell =
      ask("/api/v1/map", {{"session", maps["session"]}, {"name", "cross"}, {"head", 2}, {"cells", {1, 1}}});
  float largest = 0;
  for (const Json& row : cross)
    for (const Json& w : row) largest = std::max(largest, w.get<float>());
  EXPECT_EQ(cell["values"][0][0].get<float>(), largest);
  EXPECT_EQ(cell["pooled"], "max");

  std::filesystem::remove_all(folder + "/small");
  EXPECT_EQ(api.answer({"POST", "/api/v1/maps", "", R"({"model": "m1", "text": "a"})"}).status, 410);
}

TEST(Gate, LetsInOnlyItsOwnPage) {
  const GateRules rules{.hosts = {"127.0.0.1:7800"}, .token = ""};
  HttpRequest request{.method = "POST", .path = "/", .query = "", .headers = {{"host", "127.0.0.1:7800"}}, .body = ""};
  EXPECT_EQ(refused(request, rules)->status, 415);
  request.headers["content-type"] = "application/json; charset=utf-8";
  EXPECT_FALSE(refused(request, rules));
  request.headers["origin"] = "http://127.0.0.1:7800";
  EXPECT_FALSE(refused(request, rules));
  request.headers["origin"] = "http://evil.example";
  EXPECT_EQ(refused(request, rules)->status, 403);
  request.headers.erase("origin");
  request.headers["content-length"] = "1048577";
  EXPECT_EQ(refused(request, rules)->status, 413);
  request.headers.erase("content-length");
  request.headers["host"] = "evil.example";
  EXPECT_EQ(refused(request, rules)->status, 403);
}

TEST(Gate, TakesAFormFromAProgramForTranslateAlone) {
  const GateRules rules{.hosts = {"h"}, .token = ""};
  HttpRequest request{.method = "POST",
                      .path = "/translate",
                      .query = "",
                      .headers = {{"host", "h"}, {"content-type", "application/x-www-form-urlencoded"}},
                      .body = ""};
  EXPECT_FALSE(refused(request, rules));
  request.path = "/api/v1/translate";
  EXPECT_EQ(refused(request, rules)->status, 415);
  request.path = "/translate";
  request.headers["origin"] = "http://h";
  EXPECT_EQ(refused(request, rules)->status, 415);
  request.headers.erase("origin");
  request.headers["sec-fetch-site"] = "same-origin";
  EXPECT_EQ(refused(request, rules)->status, 415);
  EXPECT_EQ(Api::json_of_form("q=a+b%20c&source=en&x"), R"({"q":"a b c","source":"en","x":""})");
}

TEST(Gate, WantsTheTokenWhereThereIsOne) {
  const GateRules rules{.hosts = {}, .token = "secret"};
  HttpRequest request{.method = "GET", .path = "/", .query = "", .headers = {{"host", "a"}}, .body = ""};
  EXPECT_EQ(refused(request, rules)->status, 401);
  request.query = "token=secre";
  EXPECT_EQ(refused(request, rules)->status, 401);
  request.query = "a=1&token=secret";
  EXPECT_FALSE(refused(request, rules));
  request.query = "";
  request.headers["authorization"] = "Bearer secret";
  EXPECT_FALSE(refused(request, rules));
}

}  // namespace
}  // namespace qkv::serve
