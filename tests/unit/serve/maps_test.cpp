// Maps of long texts: exact rectangles, an overview that is a maximum, and memory that stays bounded.
#include <chrono>

#include "qkv/serve/map_session.h"
#include "qkv/tasks/language/generator.h"
#include "serve_fixture.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::json;

constexpr int64_t kTokens = 4096;

class LongMaps : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = serve_folder("long");
    fs::create_directories(folder / "runs");
    LanguageRun(small_language(folder / "text.txt", kTokens), (folder / "runs/lm").string(), ExistingRun::discard)
        .train();
    served = std::make_unique<Served>((folder / "runs").string());
    const std::string word = "the cat sleeps and reads . ";
    while (std::ssize(text) < kTokens) text += word;
    text.resize(kTokens);
  }
  static void TearDownTestSuite() {
    served.reset();
    fs::remove_all(folder);
  }
  inline static fs::path folder;
  inline static std::unique_ptr<Served> served;
  inline static std::string text;
};

TEST_F(LongMaps, RectanglesAreExactAndTheOverviewIsTheMaximum) {
  const Json maps = served->ask("/api/v1/maps", {{"model", "m1"}, {"text", text}});
  ASSERT_EQ(maps["maps"].size(), 4);
  ASSERT_EQ(maps["maps"][3]["shape"], Json({kTokens, kTokens}));
  EXPECT_FALSE(maps["maps"][3].contains("values"));

  // The same numbers from the library: one head as a whole matrix.
  const LanguageGenerator generator((folder / "runs/lm").string());
  class Keeper : public Probe {
   public:
    void attention(std::string_view path, const Weights& weights) override {
      if (path == "decoder.1.self") head = weights.head(0, 1);
    }
    Tensor head;
  } keeper;
  const TapePause pause;
  generator.model().features(generator.batch_of(text).read, qkv::Run{.probe = &keeper});
  const auto part = [&](const Json& more) {
    Json body = {{"session", maps["session"]}, {"name", "decoder"}, {"layer", 2}, {"head", 2}};
    body.update(more);
    return served->ask("/api/v1/map", body);
  };
  const Json tile = part({{"row", {3000, 3200}}, {"column", {2900, 3100}}});
  EXPECT_EQ(tile["pooled"], "none");
  for (int64_t i = 0; i < 200; ++i)
    for (int64_t j = 0; j < 200; ++j)
      ASSERT_EQ(tile["values"][static_cast<size_t>(i)][static_cast<size_t>(j)].get<float>(),
                keeper.head.ptr()[(3000 + i) * kTokens + 2900 + j]);
  // Cells that do not divide the map evenly.
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{128, 128}, {100, 37}, {1, 1}}) {
    const Json overview = part({{"cells", {rows, columns}}});
    EXPECT_EQ(overview["pooled"], "max");
    std::vector<float> expected(static_cast<size_t>(rows * columns), 0);
    for (int64_t i = 0; i < kTokens; ++i)
      for (int64_t j = 0; j < kTokens; ++j) {
        float& cell = expected[static_cast<size_t>(i * rows / kTokens * columns + j * columns / kTokens)];
        cell = std::max(cell, keeper.head.ptr()[i * kTokens + j]);
      }
    std::vector<float> got;
    for (const Json& row : overview["values"])
      for (const Json& v : row) got.push_back(v.get<float>());
    EXPECT_EQ(got, expected) << rows << " x " << columns;
  }
}

TEST_F(LongMaps, ARectangleOutsideOfTheMapIsRefused) {
  const Json maps = served->ask("/api/v1/maps", {{"model", "m1"}, {"text", text}});
  const auto error = [&](const Json& more) {
    Json body = {{"session", maps["session"]}, {"name", "decoder"}};
    body.update(more);
    return served->ask("/api/v1/map", body, 400)["error"].get<std::string>();
  };
  EXPECT_EQ(error({{"row", {-1, 2}}}), "row: expected [a, b] with 0 <= a < b <= 4096, got [-1,2]");
  EXPECT_EQ(error({{"column", {5, 5}}}), "column: expected [a, b] with 0 <= a < b <= 4096, got [5,5]");
  EXPECT_EQ(error({{"row", {0, 4097}}}), "row: expected [a, b] with 0 <= a < b <= 4096, got [0,4097]");
  EXPECT_EQ(error({{"row", {0.5, 2}}}), "row: expected [a, b] with 0 <= a < b <= 4096, got [0.5,2]");
  EXPECT_EQ(error({{"cells", {0, 5}}}),
            "cells: expected [rows, columns], 1 or more and at most 65536 in all, got [0,5]");
  EXPECT_EQ(error({{"cells", {4096, 4096}}}),
            "cells: expected [rows, columns], 1 or more and at most 65536 in all, got [4096,4096]");
  EXPECT_EQ(error({{"layer", 3}}), "layer: expected a whole number from 1 to 2, got 3");
}

TEST_F(LongMaps, EditsAndDenseReadingsOfLongTextsAreRefused) {
  EXPECT_EQ(
      served->ask("/api/v1/maps", {{"model", "m1"}, {"text", text}, {"edits", {{{"name", "decoder"}, {"do", "off"}}}}},
                  400)["error"],
      "edits are for texts of at most 1024 tokens, got 4096");
  EXPECT_EQ(served->ask("/api/v1/maps", {{"model", "m1"}, {"text", text}, {"reading", "rollout"}}, 400)["error"],
            "this reading is for texts of at most 512 tokens, got 4096");
}

TEST_F(LongMaps, OldSessionsMakeRoom) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < Api::kSessions + 3; ++i)
    ids.push_back(served->ask("/api/v1/maps", {{"model", "m1"}, {"text", "the cat"}})["session"]);
  served->ask("/api/v1/map", {{"session", ids.front()}, {"name", "decoder"}}, 404);
  served->ask("/api/v1/map", {{"session", ids[2]}, {"name", "decoder"}}, 404);
  served->ask("/api/v1/map", {{"session", ids[3]}, {"name", "decoder"}});
  served->ask("/api/v1/map", {{"session", ids.back()}, {"name", "decoder"}});
}

TEST(Sessions, AreBoundedInMemory) {
  ModelShelf shelf("");
  EventHub events;
  Api api(shelf, events);
  const auto of_bytes = [](int64_t bytes) {
    auto session = std::make_shared<MapSession>();
    session->parts.push_back({"cross", {}, Tensor::empty({1, 1, 1, bytes / 4})});
    return session;
  };
  const std::string first = api.keep(of_bytes(Api::kSessionBytes / 2));
  const std::string second = api.keep(of_bytes(Api::kSessionBytes / 4));
  EXPECT_NO_THROW(api.session(first));
  const std::string third = api.keep(of_bytes(Api::kSessionBytes / 2));
  EXPECT_ANY_THROW(api.session(first));
  EXPECT_NO_THROW(api.session(second));
  EXPECT_NO_THROW(api.session(third));
  EXPECT_ANY_THROW(api.keep(of_bytes(Api::kSessionBytes + 4)));
  EXPECT_NO_THROW(api.session(third)) << "one that is too large pushes nobody out";
}

}  // namespace
}  // namespace qkv::serve
