// POST /translate: hypotheses with the probability of every word, what else it could have been, and where it looked.
#include <algorithm>
#include <unordered_map>

#include "qkv/data/en_fr.h"
#include "qkv/data/text.h"
#include "qkv/report/translations.h"
#include "qkv/serve/call.h"
#include "qkv/serve/edits.h"
#include "qkv/tasks/attention_maps.h"
#include "qkv/tasks/translation/word_attention.h"

namespace qkv::serve {
namespace {

// The pair of the built-in corpus with that source sentence, in the corpus that the model was trained on.
const AlignedPair* corpus_pair(const TranslationDataConfig& data, const std::string& text) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, int64_t, bool>, std::unordered_map<std::string, AlignedPair>> corpora;
  if (!data.built_in()) return nullptr;
  const std::lock_guard lock(mutex);
  auto& corpus = corpora[{data.corpus_size, data.corpus_seed, data.reverse}];
  if (corpus.empty())
    for (AlignedPair& pair : en_fr_corpus(
             {std::min<int64_t>(data.corpus_size, 200'000), static_cast<uint64_t>(data.corpus_seed), data.reverse}))
      corpus.emplace(pair.source, pair);
  const auto found = corpus.find(text);
  return found == corpus.end() ? nullptr : &found->second;
}

// (steps, maps, T) -> (steps, T): the mean over the heads of the last layer, or the only map.
Tensor last_layer(const Translator& translator, const Tensor& attention) {
  const auto maps = translator.model().facts().source_maps();
  if (!maps || !attention.defined()) return {};
  const int64_t steps = attention.size(0), all = attention.size(1), width = attention.size(2);
  const int64_t heads = maps->heads, first = all - heads;
  Tensor out = zeros({steps, width});
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t h = first; h < all; ++h)
      for (int64_t j = 0; j < width; ++j)
        out.mutable_ptr()[s * width + j] += attention.ptr()[(s * all + h) * width + j] / static_cast<float>(heads);
  return out;
}

Json steps_json(const Translator& translator, const ForcedTranslation& forced) {
  const Tokenizer& target = translator.tokenizers().target;
  const auto tokens = target.tokens(forced.target);
  Json out = Json::array();
  for (size_t s = 0; s < tokens.size(); ++s) {
    Json top = Json::array();
    for (const LikelyToken& t : forced.forced.likeliest[s])
      top.push_back({{"token", target.tokens(std::vector{t.token})[0]},
                     {"probability", std::exp(t.log_probability)},
                     {"log_probability", t.log_probability}});
    out.push_back({{"token", tokens[s]}, {"log_probability", forced.forced.log_probabilities[s]}, {"top", top}});
  }
  return out;
}

double length_score(const Translator& translator, double log_probability, size_t tokens) {
  return log_probability /
         std::pow(static_cast<double>(std::max<size_t>(tokens, 1)), translator.config().decoding.length_penalty);
}

struct Written {
  std::string text;
  std::vector<int32_t> ids;  // with <eos>, if it ended
  double log_probability, score;
  bool ended;
};

Json written_json(const Translator& translator, const Written& w, const ForcedTranslation& forced) {
  const Tensor attention = last_layer(translator, forced.forced.attention);
  return {{"text", w.text},
          {"tokens", translator.tokenizers().target.tokens(w.ids)},
          {"log_probability", w.log_probability},
          {"score", w.score},
          {"ended", w.ended},
          {"steps", steps_json(translator, forced)},
          {"attention", attention.defined() ? nested(attention) : Json()}};
}

Json tree_json(const Translator& translator, const std::vector<SearchNode>& tree) {
  Json out = Json::array();
  for (size_t i = 0; i < tree.size(); ++i)
    out.push_back({{"id", i},
                   {"parent", tree[i].parent},
                   {"token", translator.tokenizers().target.tokens(std::vector{tree[i].token})[0]},
                   {"log_probability", tree[i].log_probability},
                   {"finished", tree[i].ended}});
  return out;
}

// A given text as the model scores it.
Json given_json(const Translator& translator, const std::string& source, const std::string& target, int64_t top,
                const AttentionEdits& edits, const Text& name, double& score) {
  ForceOptions options{
      .edits = edits, .likeliest = top, .source_name = tr("the sentence"), .target_name = name, .first_line = 0};
  const auto forced = translator.force({{source}, {target}}, options)[0];
  require(!forced.target.empty(), "{name} is empty", "name"_a = name);
  const double log_probability = forced.forced.log_probability();
  score = length_score(translator, log_probability, forced.target.size());
  return written_json(translator, {target, forced.target, log_probability, score, true}, forced);
}

// Links between words (the corpus') become cells of the token map, and the map's own links are scored against them.
Json gold_json(const Translator& translator, const AlignedPair& pair, const std::string& text,
               const Tensor& attention) {
  if (text != pair.target || !attention.defined())
    return {{"target", pair.target}, {"links", Json::array()}, {"aer", nullptr}};
  Json links = Json::array();
  Alignment gold;
  for (const auto& [s, t] : pair.links) gold.push_back({s, t, false});
  for (const auto& [s, t] : pair.possible) gold.push_back({s, t, true});
  const auto source_words = translator.tokenizers().source.word_of_token(pair.source),
             target_words = translator.tokenizers().target.word_of_token(pair.target);
  for (const AlignmentLink& link : gold)
    for (size_t t = 0; t < target_words.size(); ++t)
      for (size_t s = 0; s < source_words.size(); ++s)
        if (source_words[s] == link.source && target_words[t] == link.target) links.push_back({t, s});
  const Tensor layered = attention.viewed({attention.size(0), 1, attention.size(1)});
  const Tensor words =
      word_attention(layered, translator.tokenizers().source, pair.source, translator.tokenizers().target, pair.target);
  const Alignment found = align_words(words.viewed({words.size(1), words.size(2)}));
  const auto error = score_alignment(found, gold).error_rate();
  return {{"target", pair.target}, {"links", links}, {"aer", error ? Json(*error) : Json()}};
}

}  // namespace

Json translate(const Call& call) {
  const Fields in = call.fields();
  const auto translator = call.api.shelf().translator(in.text("model"));
  const std::string text = in.text("text");
  check_utf8(text, tr("the sentence"));
  const int64_t top = in.whole("top", 1, 50, 5);
  TranslateOptions options = translator->defaults();
  options.beam = in.whole("beam", 1, 32, options.beam);
  options.best = std::min(in.whole("hypotheses", 1, 32, options.beam), options.beam);
  options.max_length = std::min<int64_t>(options.max_length, 200);
  options.name = tr("the sentence");
  options.first_line = 0;
  options.watch.stop = call.stop;
  options.edits = read_edits(in, translator->model().facts());
  const Tokenizer& target = translator->tokenizers().target;
  if (!call.view.empty() && in.flag("stream", false))
    options.watch.on_token = [&](const WrittenToken& t) {
      call.api.events().publish("token", Json{{"view", call.view},
                                              {"token", target.tokens(std::vector{t.token})[0]},
                                              {"log_probability", t.log_probability}}
                                             .dump(-1, ' ', false, Json::error_handler_t::replace));
    };
  std::vector<SearchNode> tree;
  if (in.flag("tree", false)) options.tree = &tree;
  require(!translator->tokenizers().source.encode(text).empty(), "the sentence is empty");
  const std::vector<std::string> one = {text};
  const Translation translation = translator->translate(one, options)[0];
  call.go_on();

  Json out = Json::object();
  const Tokenizer& source = translator->tokenizers().source;
  out["source_tokens"] = source.tokens(translation.source);
  out["unknown"] = Json::array();
  for (size_t i = 0; i < translation.source.size(); ++i)
    if (translation.source[i] == source.unk()) out["unknown"].push_back(i);
  std::vector<Written> written;
  std::vector<std::vector<int32_t>> sources, targets;
  for (const Hypothesis& h : translation.hypotheses) {
    std::vector<int32_t> ids = h.tokens;
    if (h.ended) ids.push_back(target.eos());
    written.push_back({translator->text(h, translation.writing), ids, h.log_probability, h.score, h.ended});
    sources.push_back(translation.source);
    targets.push_back(ids);
  }
  const auto forced = translator->force_ids(sources, targets, {.edits = options.edits, .likeliest = top});
  out["hypotheses"] = Json::array();
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i].ids.empty()) out["hypotheses"].push_back(written_json(*translator, written[i], forced[i]));
  call.go_on();
  double ignored = 0;
  if (in.has("force"))
    out["forced"] = given_json(*translator, text, in.text("force"), top, options.edits, tr("the forced text"), ignored);
  const AlignedPair* pair = corpus_pair(translator->config().data, text);
  if (in.has("reference") || pair) {
    const std::string reference = in.has("reference") ? in.text("reference") : pair->target;
    double score = 0;
    out["reference"] = given_json(*translator, text, reference, top, options.edits, tr("the reference"), score);
    // The same ranking as the search's: if the reference ranks higher, the search has missed it; else the model prefers
    // its own.
    const bool same = !written.empty() && out["reference"]["tokens"] == out["hypotheses"][0]["tokens"];
    const double best = written.empty() ? score : written.front().score;
    out["verdict"] = same ? "equal" : score > best ? "search" : "model";
  }
  if (pair && !written.empty())
    out["gold"] =
        gold_json(*translator, *pair, written.front().text, last_layer(*translator, forced.front().forced.attention));
  if (options.tree) out["tree"] = tree_json(*translator, tree);
  out["command"] =
      edited(in) ? ask_line(call, "translate")
                 : "echo" + command_line({text}).substr(3) + " | " +
                       command_line({"translate", "--model", call.api.shelf().model(in.text("model")).folder, "--beam",
                                     std::to_string(options.beam), "--nbest", std::to_string(options.best)});
  return out;
}

}  // namespace qkv::serve
