// Lab 10.7: the Transformer. The trained models that its steps share.
#include "qkv/labs/transformer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>

#include "qkv/core/parallel.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/english_edition.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/work.h"
#include "qkv/tasks/presets.h"

namespace qkv::labs {
namespace transformer {
namespace {

constexpr int64_t kJudged = 400;
constexpr int64_t kDeep = 6;

struct Workshop {
  std::map<Kind, std::unique_ptr<Trained>> models;
  std::map<Judge, SentencePairs> judged;
  SentencePairs shown;
};

void turn_into(TranslationConfig& c, Kind kind) {
  switch (kind) {
    case Kind::model:
    case Kind::reference:
    case Kind::english:
      return;
    case Kind::one_layer:
      c.transformer().layers = 1;
      return;
    case Kind::four_layers:
      c.transformer().layers = 4;
      c.training.warmup *= 8;  // with a shorter one they hardly start
      return;
    case Kind::four_pre:
      c.transformer().layers = 4;
      c.transformer().norm = NormPlace::pre;
      return;
    case Kind::additive:
      c.transformer().attention = ScorerKind::additive;
      return;
    case Kind::deep_pre:
      c.transformer().norm = NormPlace::pre;
      [[fallthrough]];
    case Kind::deep_post:
      c.transformer().layers = kDeep;
      return;
    case Kind::learned:
      c.transformer().positions = PositionKind::learned;
      return;
    case Kind::relative:
      c.transformer().positions = PositionKind::relative;
      return;
    case Kind::rotary:
      c.transformer().positions = PositionKind::rotary;
      return;
    case Kind::alibi:
      c.transformer().positions = PositionKind::alibi;
      return;
    case Kind::no_positions:
      c.transformer().positions = PositionKind::none;
      return;
  }
}

// A Transformer of the book's size for the built-in corpus.
TranslationConfig small_config(uint64_t seed) {
  TranslationConfig c = translation_preset("transformer");
  c.data.corpus_size = 12000;
  c.data.corpus_seed = static_cast<int64_t>(seed);
  c.transformer().hidden = 32;
  c.transformer().ffn = 64;
  c.transformer().dropout = 0;  // every sentence is seen only a few times
  c.training.epochs = 8;
  c.training.batch_rows = 16;
  c.training.rate = 0.005;
  c.training.warmup = 100;
  return c;
}

bool is_deep(Kind kind) { return kind == Kind::deep_post || kind == Kind::deep_pre; }
bool is_whole(Kind kind) {
  return kind == Kind::model || kind == Kind::one_layer || kind == Kind::four_layers || kind == Kind::four_pre;
}

// What is trained together; long trainings first, so that no thread is left alone with one at the end.
std::vector<Kind> trained_with(const Page& page, Kind kind) {
  if (kind == Kind::english || (kind == Kind::model && page.quick())) return {kind};
  if (is_whole(kind)) return {Kind::four_layers, Kind::four_pre, Kind::model, Kind::one_layer};
  return {Kind::deep_post, Kind::deep_pre, Kind::additive,  Kind::relative,    Kind::rotary,
          Kind::alibi,     Kind::learned,  Kind::reference, Kind::no_positions};
}

// The name shown on screen during training.
Text name_of(Kind kind) {
  switch (kind) {
    case Kind::model:
      return tr("the Transformer");
    case Kind::reference:
      return tr("two layers");
    case Kind::one_layer:
      return tr("one layer");
    case Kind::four_layers:
      return tr("four layers");
    case Kind::four_pre:
      return tr("four layers, pre-norm");
    case Kind::additive:
      return tr("additive scores");
    case Kind::deep_post:
      return tr("deep, post-norm");
    case Kind::deep_pre:
      return tr("deep, pre-norm");
    case Kind::learned:
      return tr("learned positions");
    case Kind::relative:
      return tr("relative positions");
    case Kind::rotary:
      return tr("rotary positions");
    case Kind::alibi:
      return verbatim("ALiBi");
    case Kind::no_positions:
      return tr("no positions");
    case Kind::english:
      return tr("English edition");
  }
  return {};
}

}  // namespace

TranslationConfig config_of(const Page& page, Kind kind) {
  if (kind == Kind::english) return english_config(page, "d2l-en-transformer");
  const bool from_file = !page.data().empty();
  TranslationConfig c = from_file ? translation_preset("d2l-transformer") : small_config(page.seed());
  if (from_file) c.data.pairs = page.data();
  if (!is_whole(kind)) {
    if (!from_file) c.data.corpus_size = is_deep(kind) ? 1000 : 3000;
    c.training.epochs = from_file ? (is_deep(kind) ? 20 : 40) : (is_deep(kind) ? 6 : 5);
    c.training.average_last = 0;
  }
  // Warm-up and a falling rate would hide the effect of where the norms are.
  if (is_deep(kind)) {
    c.training.schedule = ScheduleKind::constant;
    c.training.warmup = 0;
  }
  c.training.seed = static_cast<int64_t>(page.seed());
  turn_into(c, kind);
  return c;
}

const Trained& trained(Page& page, Kind kind) {
  auto& models = page.shared<Workshop>().models;
  if (!models.contains(kind)) {
    const std::vector<Kind> together = trained_with(page, kind);
    for (const Kind k : together) models[k];
    std::vector<Text> names;
    for (const Kind k : together) names.push_back(name_of(k));
    Work work(page, training_of(names), together.size());
    // Models this small are not worth splitting within a step: each is trained on one thread, the next that is free.
    std::atomic<size_t> next = 0;
    parallel_for(threads(), 1e12, [&](int64_t) {
      for (size_t i = next++; i < together.size(); i = next++) {
        WorkObserver follower(work, i);
        models.at(together[i]) = train(config_of(page, together[i]), &follower);
      }
    });
  }
  return *models.at(kind);
}

bool is_books_data(Page& page) {
  if (page.data().empty()) return false;
  const TranslationRun& run = trained(page, Kind::model).run;
  return run.training_pairs() == 601 && run.tokenizers().source.size() == 184 && run.tokenizers().target.size() == 201;
}

const Transformer& network(const Trained& model) { return *model.run.model().transformer(); }

const SentencePairs& judged(Page& page, Judge judge) {
  SentencePairs& pairs = page.shared<Workshop>().judged[judge];
  if (pairs.size() > 0) return pairs;
  const TranslationRun& run = trained(page, judge == Judge::model ? Kind::model : Kind::reference).run;
  pairs = page.data().empty() ? sentences_of(held_out_pairs(run)) : run.text().train;
  const auto count = static_cast<size_t>(std::min(pairs.size(), kJudged));
  pairs.source.resize(count);
  pairs.target.resize(count);
  return pairs;
}

Quality quality(Page& page, Judge judge, const std::vector<std::string>& written) {
  const SentencePairs& pairs = judged(page, judge);
  const TranslationRun& run = trained(page, Kind::model).run;
  // Texts as the vocabulary can write them: rare words become <unk>.
  const Tokenizer& words = run.tokenizers().target;
  std::multimap<std::string, std::string> known;
  const auto learn = [&](const SentencePairs& text) {
    for (size_t i = 0; i < text.source.size(); ++i)
      known.emplace(text.source[i], words.decode(words.encode(text.target[i])));
  };
  learn(pairs);
  if (!page.data().empty()) learn(run.text().train);
  Quality out;
  for (size_t i = 0; i < written.size(); ++i) {
    double best = 0;
    bool exact = false;
    const auto [begin, end] = known.equal_range(pairs.source[i]);
    for (auto at = begin; at != end; ++at) {
      best = std::max(best, d2l_bleu(written[i], at->second));
      exact = exact || written[i] == at->second;
    }
    out.bleu += best / static_cast<double>(written.size());
    out.exact += exact / static_cast<double>(written.size());
  }
  return out;
}

Text judged_name(const Page& page) { return page.data().empty() ? tr("held-out sentences") : tr("training sentences"); }

const SentencePairs& shown_pairs(Page& page) {
  SentencePairs& out = page.shared<Workshop>().shown;
  if (out.size() > 0) return out;
  if (!page.data().empty()) {
    for (const BookSentence& s : book_sentences()) {
      out.source.emplace_back(s.source);
      out.target.emplace_back(s.target);
    }
    return out;
  }
  const SentencePairs& held = judged(page, Judge::model);
  for (const char* sign : {" ?", " not ", " red ", " did not "})
    for (size_t i = 0; i < held.source.size(); ++i) {
      const bool taken = std::find(out.source.begin(), out.source.end(), held.source[i]) != out.source.end();
      if (taken || held.source[i].find(sign) == std::string::npos) continue;
      out.source.push_back(held.source[i]);
      out.target.push_back(held.target[i]);
      break;
    }
  return out;
}

std::vector<TranslationBatch> batches_of(const Trained& model, const SentencePairs& pairs) {
  const Tokenizers& t = model.run.tokenizers();
  const TranslationBatches all(encode_pairs(pairs, t.source, t.target), t.source.pad(), t.target.pad(), t.target.bos(),
                               {.rows = 64, .shuffle = false});
  std::vector<TranslationBatch> out;
  for (int64_t i = 0; i < all.batches(); ++i) out.push_back(all.batch(0, i));
  return out;
}

}  // namespace transformer

Lab transformer_lab() {
  using namespace transformer;
  return {"10.7",
          "transformer",
          tr("The Transformer"),
          {feed_forward_step,
           norm_step,
           add_norm_step,
           encoder_step,
           decoder_step,
           sizes_step,
           training_step,
           sentences_step,
           maps_step,
           mask_step,
           cheating_step,
           cache_step,
           inference_positions_step,
           slow(position_kinds_step),
           slow(norm_place_step),
           slow(depth_step),
           slow(additive_step),
           slow(language_model_step),
           slow(english_step),
           long_input_step,
           vision_step},
          true,
          60,
          10};
}

}  // namespace qkv::labs
