// POST /next and /generate: what a language model writes next, and what it reads.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/ops/softmax.h"
#include "qkv/serve/edits.h"
#include "qkv/serve/map_session.h"

namespace qkv::serve {
namespace {

// Which tokens a draw would consider: the k likeliest, and of those the fewest with total probability p.
std::vector<bool> kept_tokens(const std::vector<double>& probabilities, const std::vector<size_t>& order, int64_t top_k,
                              double top_p) {
  std::vector<bool> kept(probabilities.size(), false);
  const size_t most = top_k > 0 ? std::min<size_t>(static_cast<size_t>(top_k), order.size()) : order.size();
  double all = 0, sum = 0;
  for (size_t i = 0; i < most; ++i) all += probabilities[order[i]];
  for (size_t i = 0; i < most && (i == 0 || sum < top_p * all); ++i) {
    kept[order[i]] = true;
    sum += probabilities[order[i]];
  }
  return kept;
}

// The weight from a token to the one after its own last occurrence: a head that copies what followed (Olsson et al.,
// 2022).
Json induction(const MapSession& seen) {
  Json best;
  double most = 0;
  for (const MapPart& p : seen.parts) {
    if (p.name != "decoder" || p.queries() != p.keys() || p.keys() > 512) continue;
    for (int64_t layer = 0; layer < p.layer_count(); ++layer)
      for (int64_t head = 0; head < p.heads(); ++head) {
        const Tensor map = seen.map(p.name, layer + 1, head + 1);
        double sum = 0;
        int64_t count = 0;
        for (int64_t i = 1; i < p.queries(); ++i)
          for (int64_t j = i - 1; j >= 0; --j) {
            if (seen.input_tokens[static_cast<size_t>(i)] != seen.input_tokens[static_cast<size_t>(j)]) continue;
            sum += static_cast<double>(map.ptr()[i * p.keys() + j + 1]);
            ++count;
            break;
          }
        if (count == 0 || sum / static_cast<double>(count) <= most) continue;
        most = sum / static_cast<double>(count);
        best = {{"layer", layer + 1}, {"head", head + 1}, {"score", most}, {"places", count}};
      }
  }
  return best;
}

GenerateOptions read_options(const Fields& in, const LanguageGenerator& generator) {
  GenerateOptions options = generator.defaults();
  options.temperature = in.number("temperature", 0, 100, options.temperature);
  options.top_k = in.whole("top_k", 0, 1'000'000'000, options.top_k);
  options.top_p = in.number("top_p", 1e-6, 1, options.top_p);
  options.max_tokens = in.whole("count", 1, 1000, 20);
  options.seed = static_cast<uint64_t>(in.whole("seed", 0, INT64_C(1) << 53, 0));
  return options;
}

void need_causal(const LanguageGenerator& generator) {
  require(generator.objective() == LanguageObjective::causal,
          "this model fills gaps: only a causal model writes the next token");
}

}  // namespace

Json next_tokens(const Call& call) {
  const Fields in = call.fields();
  const auto generator = call.api.shelf().generator(in.text("model"));
  need_causal(*generator);
  const std::string prompt = in.text("prompt");
  const double temperature = in.number("temperature", 0, 100, 1);
  const AttentionEdits edits = read_edits(in, generator->config().facts());
  Json body = {{"model", in.text("model")}, {"text", prompt}};
  if (in.has("edits")) body["edits"] = in.at("edits");
  auto seen = std::make_shared<MapSession>(look_at_text(call, Fields(body)));
  const LanguageBatch batch = generator->batch_of(prompt);
  const TapePause pause;
  EditProbe probe(edits);
  const Tensor features = generator->model().features(batch.read, Run{.probe = &probe});
  // Scores of the last token alone: a row of a product does not depend on the others.
  const int64_t width = features.size(2);
  Tensor last = Tensor::empty({1, 1, width});
  std::copy_n(features.ptr() + (features.size(1) - 1) * width, width, last.mutable_ptr());
  const Tensor scores = generator->model().output()(last);
  const int64_t vocabulary = scores.size(2);
  const float* row = scores.ptr();
  std::vector<size_t> order(static_cast<size_t>(vocabulary));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  std::vector<double> probabilities(static_cast<size_t>(vocabulary), 0);
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double difference = static_cast<double>(row[i]) - static_cast<double>(row[order[0]]);
    probabilities[i] = temperature > 0 ? std::exp(difference / temperature) : i == order[0] ? 1 : 0;
    sum += probabilities[i];
  }
  for (double& p : probabilities) p /= sum;
  const auto kept =
      kept_tokens(probabilities, order, in.whole("top_k", 0, 1'000'000'000, 0), in.number("top_p", 1e-6, 1, 1));
  Json next = Json::array();
  const auto top = static_cast<size_t>(in.whole("top", 1, 200, 20));
  for (size_t i = 0; i < std::min(top, order.size()); ++i) {
    const auto id = static_cast<int32_t>(order[i]);
    next.push_back({{"id", id},
                    {"token", generator->tokens(std::vector{id})[0]},
                    {"text", id < generator->tokenizer().size() ? generator->tokenizer().decode(std::vector{id}) : ""},
                    {"probability", probabilities[order[i]]},
                    {"kept", static_cast<bool>(kept[order[i]])}});
  }
  Json out = {{"tokens", seen->source_tokens}, {"unknown", generator->unknown(prompt)}, {"next", next}};
  out["kept"] = std::count(kept.begin(), kept.end(), true);
  out["maps"] = maps_json(*seen, call);
  if (Json head = induction(*seen); !head.is_null()) out["induction"] = head;
  out["command"] = ask_line(call, "next");
  out["session"] = call.api.keep(std::move(seen));
  return out;
}

Json generate(const Call& call) {
  const Fields in = call.fields();
  const auto generator = call.api.shelf().generator(in.text("model"));
  need_causal(*generator);
  GenerateOptions options = read_options(in, *generator);
  options.stop = call.stop;
  options.edits = read_edits(in, generator->config().facts());
  const std::vector<std::string> prompts = {in.text("prompt")};
  if (!call.view.empty() && in.flag("stream", false))
    options.on_text = [&](size_t, size_t, const std::string& piece) {
      call.api.events().publish(
          "token", Json{{"view", call.view}, {"token", piece}}.dump(-1, ' ', false, Json::error_handler_t::replace));
    };
  const Continued written = generator->generate(prompts, options)[0];
  call.go_on();
  const GeneratedText& text = written.texts.at(0);
  Json tokens = Json::array();
  const auto shown = generator->tokens(text.tokens);
  for (size_t i = 0; i < shown.size(); ++i)
    tokens.push_back({{"token", shown[i]}, {"probability", std::exp(text.log_probabilities[i])}});
  return {
      {"prompt_tokens", generator->tokens(written.prompt)},
      {"text", text.text},
      {"tokens", tokens},
      {"command", command_line({"generate", "--model", call.api.shelf().model(in.text("model")).folder, "--temperature",
                                Json(options.temperature).dump(), "--max-tokens", std::to_string(options.max_tokens),
                                "--seed", std::to_string(options.seed), "--prompt", prompts[0]})}};
}

}  // namespace qkv::serve
