// An edited answer is a library run with the same edits, bit for bit: in the whole pass and while decoding.
#include "qkv/attention/edits.h"

#include "qkv/models/attention_paths.h"
#include "qkv/report/translations.h"
#include "qkv/tasks/translation/translator.h"
#include "serve_fixture.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::json;

const std::string kText = "the red cat sleeps .";
const std::string kTarget = "le chat rouge dort .";

// The same change as a request says it and as the library takes it.
struct Case {
  std::string name;
  Json asked;
  AttentionEdits edits;
};

std::vector<Case> transformer_cases() {
  return {
      {"head off",
       {{{"name", "cross"}, {"layer", 2}, {"head", 1}, {"do", "off"}}},
       {{.path = "decoder.1.cross", .what = EditKind::off, .head = 0}}},
      {"row flat",
       {{{"name", "encoder"}, {"layer", 1}, {"head", 2}, {"query", 1}, {"do", "flat"}}},
       {{.path = "encoder.0.self", .what = EditKind::flat, .head = 1, .query = 1}}},
      {"row forced",
       {{{"name", "cross"}, {"layer", 1}, {"query", 0}, {"do", "force"}, {"key", 3}}},
       {{.path = "decoder.0.cross", .what = EditKind::force, .query = 0, .keys = {3}}}},
      {"temperature",
       {{{"name", "decoder"}, {"layer", 2}, {"do", "temperature"}, {"value", 0.25}}},
       {{.path = "decoder.1.self", .what = EditKind::temperature, .temperature = 0.25}}},
      {"keys masked",
       {{{"name", "cross"}, {"layer", 2}, {"head", 2}, {"do", "mask"}, {"keys", {0, 2}}}},
       {{.path = "decoder.1.cross", .what = EditKind::mask, .head = 1, .keys = {0, 2}}}},
      {"several",
       {{{"name", "encoder"}, {"layer", 2}, {"do", "temperature"}, {"value", 3}},
        {{"name", "cross"}, {"layer", 1}, {"head", 1}, {"do", "flat"}},
        {{"name", "cross"}, {"layer", 1}, {"head", 1}, {"query", 2}, {"do", "off"}}},
       {{.path = "encoder.1.self", .what = EditKind::temperature, .temperature = 3},
        {.path = "decoder.0.cross", .what = EditKind::flat, .head = 0},
        {.path = "decoder.0.cross", .what = EditKind::off, .head = 0, .query = 2}}},
  };
}

std::vector<Case> bahdanau_cases(const std::string& path) {
  return {
      {"off", {{{"name", "cross"}, {"do", "off"}}}, {{.path = path, .what = EditKind::off}}},
      {"flat",
       {{{"name", "cross"}, {"query", 1}, {"do", "flat"}}},
       {{.path = path, .what = EditKind::flat, .query = 1}}},
      {"force",
       {{{"name", "cross"}, {"do", "force"}, {"key", 2}}},
       {{.path = path, .what = EditKind::force, .keys = {2}}}},
      {"temperature",
       {{{"name", "cross"}, {"do", "temperature"}, {"value", 0.1}}},
       {{.path = path, .what = EditKind::temperature, .temperature = 0.1}}},
      {"mask",
       {{{"name", "cross"}, {"do", "mask"}, {"keys", {1}}}},
       {{.path = path, .what = EditKind::mask, .keys = {1}}}},
  };
}

std::vector<float> floats(const Json& rows) {
  std::vector<float> out;
  for (const Json& row : rows)
    for (const Json& v : row) out.push_back(v.get<float>());
  return out;
}
std::vector<float> floats(const Tensor& x) { return {x.data().begin(), x.data().end()}; }

Tensor head_of(const Tensor& maps, int64_t layer, int64_t head) {  // (layers, heads, q, k)
  Tensor out = Tensor::empty({maps.size(2), maps.size(3)});
  std::copy_n(maps.ptr() + (layer * maps.size(1) + head) * out.numel(), out.numel(), out.mutable_ptr());
  return out;
}

// Every map of an answer equals that of the library.
void expect_maps(const Json& answer, const std::map<std::string, Tensor>& expected) {
  size_t seen = 0;
  for (const Json& map : answer["maps"]) {
    const Tensor& all = expected.at(map["name"]);
    EXPECT_EQ(floats(map["values"]),
              floats(head_of(all, map["layer"].get<int64_t>() - 1, map["head"].get<int64_t>() - 1)))
        << map["name"] << map["layer"] << map["head"];
    ++seen;
  }
  size_t all = 0;
  for (const auto& [name, maps] : expected) all += static_cast<size_t>(maps.size(0) * maps.size(1));
  EXPECT_EQ(seen, all);
}

std::map<std::string, Tensor> library_maps(const Translator& translator, const ForcedTranslation& pair,
                                           const AttentionEdits& edits) {
  if (!translator.model().transformer()) {
    const Shape& s = pair.forced.attention.shape();
    return {{"cross", report::by_layers(translator, pair.forced.attention).viewed({1, s[1], s[0], s[2]})}};
  }
  std::vector<int32_t> read = {translator.tokenizers().target.bos()};
  read.insert(read.end(), pair.target.begin(), pair.target.end() - 1);
  const auto row = [](const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); };
  const AttentionMaps maps =
      transformer_attention(*translator.model().transformer(), row(pair.source), {}, row(read), edits).weights;
  return {{"encoder", maps.encoder}, {"decoder", maps.decoder}, {"cross", maps.cross}};
}

class ServeEdits : public ServeModels {
 protected:
  static void expect_case(const std::string& model, const Case& c) {
    SCOPED_TRACE(model + ": " + c.name);
    const Translator translator((folder / model).string());
    const Json body = {{"model", served->id(model)}, {"text", kText}, {"edits", c.asked}};
    const auto ask = [&](const std::string& path, const Json& more) {
      Json all = body;
      all.update(more);
      return served->ask("/api/v1/" + path, all);
    };
    const auto force = [&](const std::string& target, const AttentionEdits& edits) {
      return translator.force({{kText}, {target}}, {.edits = edits, .likeliest = 3, .first_line = 0})[0];
    };
    // Decoding: hypotheses, every step of them, and a translation that is forced by hand.
    const Json translated = ask("translate", {{"beam", 2}, {"top", 3}, {"force", kTarget}});
    TranslateOptions options = translator.defaults();
    options.beam = options.best = 2;
    options.edits = c.edits;
    const std::vector<std::string> one = {kText};
    const Translation expected = translator.translate(one, options)[0];
    ASSERT_EQ(translated["hypotheses"].size(), expected.hypotheses.size());
    for (size_t i = 0; i < expected.hypotheses.size(); ++i) {
      EXPECT_EQ(translated["hypotheses"][i]["log_probability"], expected.hypotheses[i].log_probability);
      EXPECT_EQ(translated["hypotheses"][i]["text"], translator.text(expected.hypotheses[i], expected.writing));
    }
    const ForcedTranslation forced = force(kTarget, c.edits);
    EXPECT_EQ(translated["forced"]["log_probability"], forced.forced.log_probability());
    for (size_t s = 0; s < forced.target.size(); ++s) {
      EXPECT_EQ(translated["forced"]["steps"][s]["log_probability"], forced.forced.log_probabilities[s]);
      for (size_t k = 0; k < 3; ++k)
        EXPECT_EQ(translated["forced"]["steps"][s]["top"][k]["log_probability"],
                  forced.forced.likeliest[s][k].log_probability);
    }
    EXPECT_NE(forced.forced.log_probability(), force(kTarget, {}).forced.log_probability()) << "the edit does nothing";
    // Maps of a given translation, and of the one that the edited model writes.
    expect_maps(ask("maps", {{"target", kTarget}}), library_maps(translator, forced, c.edits));
    options = translator.defaults();
    options.edits = c.edits;
    options.keep_attention = true;
    const Translation best = translator.translate(one, options)[0];
    std::vector<int32_t> ids = best.hypotheses[0].tokens;
    if (best.hypotheses[0].ended) ids.push_back(translator.tokenizers().target.eos());
    ForcedTranslation own{best.source, ids, {}};
    own.forced.attention = best.hypotheses[0].attention;
    expect_maps(ask("maps", Json::object()), library_maps(translator, own, c.edits));
    // Comparing with the model as it is.
    const Json compared =
        served->ask("/api/v1/compare",
                    {{"left", {{"model", body["model"]}, {"text", kText}, {"target", kTarget}, {"edits", c.asked}}},
                     {"right", {{"model", body["model"]}, {"text", kText}, {"target", kTarget}}},
                     {"name", "cross"},
                     {"layer", 1},
                     {"head", 1}});
    EXPECT_EQ(floats(compared["left"]["values"]),
              floats(head_of(library_maps(translator, forced, c.edits).at("cross"), 0, 0)));
    EXPECT_EQ(floats(compared["right"]["values"]),
              floats(head_of(library_maps(translator, force(kTarget, {}), {}).at("cross"), 0, 0)));
    // How heads bear on an edited model.
    const Json heads = ask("heads", {{"target", kTarget}, {"name", "cross"}});
    EXPECT_EQ(heads["log_probability"], forced.forced.log_probability());
  }
};

TEST_F(ServeEdits, OfATransformerAreThoseOfTheLibrary) {
  for (const Case& c : transformer_cases()) expect_case("transformer", c);
}

TEST_F(ServeEdits, OfABahdanauModelAreThoseOfTheLibrary) {
  const Translator translator((folder / "bahdanau").string());
  const std::string path = attention_places(translator.model().facts()).front().path;
  for (const Case& c : bahdanau_cases(path)) expect_case("bahdanau", c);
}

TEST_F(ServeEdits, OfBlocksAreThoseOfAWholePass) {
  const Translator translator((folder / "transformer").string());
  for (const Case& c : transformer_cases()) {
    SCOPED_TRACE(c.name);
    const Json out =
        served->ask("/api/v1/blocks",
                    {{"model", served->id("transformer")}, {"text", kText}, {"target", kTarget}, {"edits", c.asked}});
    const ForcedTranslation forced = translator.force({{kText}, {kTarget}}, {.edits = c.edits, .first_line = 0})[0];
    EXPECT_EQ(out["translation"]["log_probabilities"].get<std::vector<double>>(), forced.forced.log_probabilities);
    expect_maps(out, library_maps(translator, forced, c.edits));
    // What the last block hands on is what the model computes as a whole.
    std::vector<int32_t> read = {translator.tokenizers().target.bos()};
    read.insert(read.end(), forced.target.begin(), forced.target.end() - 1);
    const auto row = [](const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); };
    EditProbe probe(c.edits);
    const Tensor features =
        translator.model().transformer()->features(row(forced.source), {}, row(read), qkv::Run{.probe = &probe});
    std::vector<double> norms;
    for (int64_t i = 0; i < features.size(1); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < features.size(2); ++j)
        sum += std::pow(static_cast<double>(features.ptr()[i * features.size(2) + j]), 2);
      norms.push_back(std::sqrt(sum));
    }
    EXPECT_EQ(out["blocks"].back()["norm"].get<std::vector<double>>(), norms);
  }
}

TEST_F(ServeEdits, HeadsThatAreOffAndTheirImportanceAreRunsWithoutThem) {
  const Translator translator((folder / "transformer").string());
  const Json out = served->ask("/api/v1/heads", {{"model", served->id("transformer")},
                                                 {"text", kText},
                                                 {"target", kTarget},
                                                 {"name", "cross"},
                                                 {"measure", "importance"},
                                                 {"off", {{{"name", "cross"}, {"layer", 2}, {"head", 2}}}}});
  const auto scored = [&](const AttentionEdits& edits) {
    return translator.force({{kText}, {kTarget}}, {.keep_attention = false, .edits = edits, .first_line = 0})[0]
        .forced.log_probability();
  };
  const AttentionEdits off = {{.path = "decoder.1.cross", .head = 1}};
  TranslateOptions options = translator.defaults();
  options.edits = off;
  const Translation written = translator.translate(std::vector{kText}, options)[0];
  EXPECT_EQ(out["text"], translator.text(written.hypotheses[0], written.writing));
  EXPECT_EQ(out["log_probability"], scored(off));
  EXPECT_EQ(out["baseline"]["log_probability"], scored({}));
  ASSERT_EQ(out["importance"].size(), 4);
  for (const Json& one : out["importance"]) {
    const AttentionEdits without = {{.path = "decoder." + std::to_string(one["layer"].get<int>() - 1) + ".cross",
                                     .head = one["head"].get<int64_t>() - 1}};
    EXPECT_EQ(one["value"], scored({}) - scored(without));
  }
}

TEST_F(ServeEdits, WhatAModelCannotHaveIsRefused) {
  const std::string id = served->id("transformer");
  const auto error = [&](const Json& edit) {
    return served->ask("/api/v1/translate", {{"model", id}, {"text", kText}, {"edits", {edit}}}, 400)["error"]
        .get<std::string>();
  };
  EXPECT_EQ(error({{"name", "cross"}, {"layer", 9}, {"do", "off"}}),
            "edits: the model has no attention \"cross\" in layer 9");
  EXPECT_EQ(error({{"name", "cross"}, {"head", 3}, {"do", "off"}}),
            "edits.head: expected a whole number from 1 to 2, got 3");
  EXPECT_EQ(error({{"name", "cross"}, {"do", "temperature"}, {"value", 0}}),
            "edits.value: expected a number from 0.001 to 1000, got 0");
  EXPECT_EQ(error({{"name", "cross"}, {"do", "mask"}, {"keys", {-1}}}),
            "keys: expected whole numbers from 0 to 1000000, got -1");
  EXPECT_EQ(error({{"name", "cross"}, {"do", "mask"}}), "edits.keys is missing");
}

}  // namespace
}  // namespace qkv::serve
