// qkv check for encoders: states depend on their own text, on all of it, and on nothing else.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/cli/check_task.h"
#include "qkv/cli/text_input.h"
#include "qkv/data/shuffle.h"
#include "qkv/tasks/encoding/leaks.h"

namespace qkv::cli {
namespace {

constexpr int64_t kMostTokensTried = 128;  // of a text of a file

std::vector<std::vector<int32_t>> encoder_texts(const CheckRequest& request, const SentenceEncoder& encoder,
                                                uint64_t seed) {
  const Rng rng = Rng(seed).at("check");
  if (request.data.empty()) return random_encoder_texts(encoder, request.count, rng);
  const std::vector<std::string> lines = read_text_lines(request.data);
  std::vector<std::vector<int32_t>> out;
  for (const int64_t i : shuffled(std::ssize(lines), rng)) {
    if (std::ssize(out) == request.count) break;
    out.push_back(encoder.read(lines[static_cast<size_t>(i)], std::min(kMostTokensTried, encoder.longest())).ids());
  }
  return out;
}

std::string difference_text(double x) { return x == 0 ? "0" : fmt::format("{:.2g}", x); }

}  // namespace

int check_encoder(const CheckRequest& request, const Global& global) {
  using Json = nlohmann::ordered_json;
  const SentenceEncoder encoder(request.model);
  const auto texts = encoder_texts(request, encoder, global.seed);
  const EncoderLeakReport report = encoder_leaks(encoder, texts, Rng(global.seed).at("leaks"));
  if (request.json) {
    const auto entry = [](const EncoderLeakReport::Tried& t) {
      return Json{{"tried", t.tried},
                  {"scores", t.compared},
                  {"largest", std::isnan(t.largest) ? Json(nullptr) : Json(t.largest)},
                  {"passed", t.passed()}};
    };
    const Json out = {{"model", request.model},
                      {"texts", texts.size()},
                      {"passed", report.passed()},
                      {"controls", report.controls},
                      {"noticed", report.noticed},
                      {"checks", {{"padding", entry(report.padding)}, {"batch_mates", entry(report.mates)}}}};
    fmt::print("{}\n", out.dump(-1, ' ', false, Json::error_handler_t::replace));
    return report.passed() ? 0 : 1;
  }
  const auto say = [&](const Text& t) { return t.in(global.language); };
  const auto row = [&](const EncoderLeakReport::Tried& t, const Text& what) {
    fmt::print("{:>9} {:>14} {:>12}  {}: {}\n", t.tried, t.compared, difference_text(t.largest), say(what),
               say(t.passed() ? tr("ok") : tr("FAILED")));
  };
  fmt::print("{}\n", say(request.data.empty() ? tr("{model}: texts of random tokens: {texts}",
                                                   "model"_a = request.model, "texts"_a = texts.size())
                                              : tr("{model}: texts of {data}: {texts}", "model"_a = request.model,
                                                   "data"_a = request.data, "texts"_a = texts.size())));
  fmt::print("{:>9} {:>14} {:>12}\n", say(tr("tried")), say(tr("scores")), say(tr("largest")));
  row(report.padding, tr("add padding, with other ids in it"));
  row(report.mates, tr("change the other rows of the batch, and their order"));
  fmt::print("{}\n",
             say(tr("control: {noticed} of {controls} changes of a token had an effect on all states of its text",
                    "noticed"_a = report.noticed, "controls"_a = report.controls)));
  if (report.noticed < report.controls)
    fmt::print("{}\n", say(tr("FAILED: some states do not depend on the whole text")));
  return report.passed() ? 0 : 1;
}

}  // namespace qkv::cli
