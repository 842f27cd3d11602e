// Lab 10.4: translation with a recurrent encoder and decoder, with and without Bahdanau's attention. The training runs
// that its steps share.
#include "qkv/labs/bahdanau.h"

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/labs/english_edition.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/work.h"
#include "qkv/tasks/presets.h"

namespace qkv::labs {
namespace bahdanau {
namespace {

// Models and sentences of one page.
struct Workshop {
  std::map<Kind, std::unique_ptr<Trained>> models;
  std::vector<AlignedPair> held_out;
  std::vector<BookRun> book_runs;
};

constexpr uint64_t kBookSeeds = 5;

// What is trained together.
std::vector<Kind> group_of(const Page& page, Kind kind) {
  if (kind == Kind::gru || kind == Kind::lstm || kind == Kind::dot) return {Kind::gru, Kind::lstm, Kind::dot};
  if (kind == Kind::english || kind == Kind::english_baseline) return {Kind::english, Kind::english_baseline};
  if (kind == Kind::baseline || kind == Kind::attention || kind == Kind::aligned)
    return page.data().empty() ? std::vector{Kind::baseline, Kind::attention}
                               : std::vector{Kind::baseline, Kind::attention, Kind::aligned};
  return {Kind::reference, Kind::fed_back, Kind::plain, Kind::plain_lstm, Kind::mixed, Kind::slow_rate, Kind::wide};
}

void turn_into(TranslationConfig& c, Kind kind) {
  if (kind == Kind::baseline || kind == Kind::plain || kind == Kind::plain_lstm || kind == Kind::slow_rate ||
      kind == Kind::wide)
    c.seq2seq().attention = ScorerKind::none;
  if (kind == Kind::lstm || kind == Kind::plain_lstm) c.seq2seq().cell = CellKind::lstm;
  if (kind == Kind::dot) c.seq2seq().attention = ScorerKind::scaled_dot;
  if (kind == Kind::mixed) c.seq2seq().bidirectional = true;
  if (kind == Kind::slow_rate) c.training.rate /= 5;
  if (kind == Kind::wide) c.seq2seq().hidden *= 2;
  if (kind == Kind::fed_back) c.book.feed_back = 0.5;
}

TranslationConfig small_config(uint64_t seed) {
  TranslationConfig c = translation_preset("bahdanau");
  c.data.corpus_size = 8000;
  c.data.corpus_seed = static_cast<int64_t>(seed);
  c.seq2seq().embed = c.seq2seq().hidden = 64;
  c.seq2seq().values = Seq2SeqConfig{}.values;  // the book's decoder: the values are the encoder's states
  c.seq2seq().embed_dropout = 0;
  c.training.epochs = 8;
  c.seq2seq().dropout = 0;  // dropout on the attention weights spreads them out
  c.training.batch_rows = 16;
  c.training.rate = 0.003;
  c.training.schedule = ScheduleKind::cosine;
  c.book.num_steps = 18;  // an unmasked loss pads to this length; no sentence is longer
  return c;
}

// The name shown on the screen while the model trains.
Text name_of(Kind kind) {
  switch (kind) {
    case Kind::baseline:
      return tr("without attention");
    case Kind::attention:
      return tr("with attention");
    case Kind::aligned:
      return tr("with attention, on the built-in corpus");
    case Kind::reference:
      return verbatim("GRU");
    case Kind::gru:
      return tr("GRU, trained to the end");
    case Kind::lstm:
      return verbatim("LSTM");
    case Kind::dot:
      return tr("dot product");
    case Kind::fed_back:
      return tr("fed back");
    case Kind::plain:
      return tr("GRU without attention");
    case Kind::plain_lstm:
      return tr("LSTM without attention");
    case Kind::mixed:
      return tr("bidirectional encoder");
    case Kind::slow_rate:
      return tr("smaller learning rate");
    case Kind::wide:
      return tr("wider states");
    case Kind::english_baseline:
      return tr("English edition, without attention");
    case Kind::english:
      return tr("English edition, with attention");
  }
  return {};
}

}  // namespace

TranslationConfig config_of(const Page& page, Kind kind) {
  if (kind == Kind::english || kind == Kind::english_baseline)
    return english_config(page, kind == Kind::english ? "d2l-en-bahdanau" : "d2l-en-seq2seq");
  const bool from_file = !page.data().empty() && kind != Kind::aligned;
  TranslationConfig c = from_file ? translation_preset(kind == Kind::baseline ? "d2l-seq2seq" : "d2l-bahdanau")
                                  : small_config(page.seed());
  if (from_file) c.data.pairs = page.data();
  const Kind group = group_of(page, kind)[0];
  if (group == Kind::gru || group == Kind::reference)
    c.seq2seq().bidirectional = false;  // a dot product needs queries as wide as the keys
  if (group == Kind::gru && !from_file) c.training.epochs = 12;
  if (group == Kind::reference) {
    c.training.epochs = from_file ? 100 : 12;
    if (!from_file) {
      c.data.corpus_size = 3000;
      c.training.rate = 0.005;
    }
  }
  c.training.seed = static_cast<int64_t>(page.seed());
  turn_into(c, kind);
  return c;
}

const Trained& trained(Page& page, Kind kind) {
  if (kind == Kind::aligned && page.data().empty()) kind = Kind::attention;
  auto& models = page.shared<Workshop>().models;
  if (!models.contains(kind)) {
    const std::vector<Kind> together = group_of(page, kind);
    for (const Kind k : together) models[k];
    std::vector<Text> names;
    for (const Kind k : together) names.push_back(name_of(k));
    Work work(page, training_of(names), together.size());
    // A step of such a small model is too little work to share between threads: each model gets its own thread instead.
    parallel_for(static_cast<int64_t>(together.size()), 1e12, [&](int64_t i) {
      const SerialScope serial;
      const Kind k = together[static_cast<size_t>(i)];
      WorkObserver follower(work, static_cast<size_t>(i));
      models.at(k) = train(config_of(page, k), &follower);
    });
  }
  return *models.at(kind);
}

const std::vector<BookRun>& book_runs(Page& page) {
  std::vector<BookRun>& runs = page.shared<Workshop>().book_runs;
  if (!runs.empty()) return runs;
  std::vector<std::string> four;
  for (const BookSentence& s : book_sentences()) four.emplace_back(s.source);
  const Trained &baseline = trained(page, Kind::baseline), &attention = trained(page, Kind::attention);
  runs.resize(kBookSeeds);
  runs[0] = {page.seed(), baseline.losses.back(), attention.losses.back(), translate(baseline, four),
             translate(attention, four)};
  for (uint64_t i = 1; i < kBookSeeds; ++i) runs[i].seed = page.seed() + i;
  Work work(page, training_of({tr("the same with other seeds")}), 2 * (kBookSeeds - 1));
  parallel_for(2 * static_cast<int64_t>(kBookSeeds - 1), 1e12, [&](int64_t i) {
    const SerialScope serial;
    WorkObserver follower(work, static_cast<size_t>(i));
    BookRun& run = runs[static_cast<size_t>(1 + i / 2)];
    const Kind kind = i % 2 ? Kind::attention : Kind::baseline;
    TranslationConfig c = config_of(page, kind);
    c.training.seed = static_cast<int64_t>(run.seed);
    const auto model = train(c, &follower);
    (kind == Kind::attention ? run.attention_loss : run.baseline_loss) = model->losses.back();
    (kind == Kind::attention ? run.attention : run.baseline) = translate(*model, four);
  });
  return runs;
}

bool is_books_data(Page& page) {
  if (page.data().empty()) return false;
  const TranslationRun& run = trained(page, Kind::attention).run;
  return run.training_pairs() == 601 && run.tokenizers().source.size() == 184 && run.tokenizers().target.size() == 201;
}

const std::vector<AlignedPair>& held_out(Page& page) {
  std::vector<AlignedPair>& pairs = page.shared<Workshop>().held_out;
  if (pairs.empty()) pairs = held_out_pairs(trained(page, Kind::aligned).run);
  return pairs;
}

Alignment gold_of(const AlignedPair& pair) {
  Alignment out;
  for (const auto& [s, t] : pair.links) out.push_back({s, t, false});
  for (const auto& [s, t] : pair.possible) out.push_back({s, t, true});
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return std::pair(a.source, a.target) < std::pair(b.source, b.target); });
  return out;
}

}  // namespace bahdanau

Lab bahdanau_lab() {
  using namespace bahdanau;
  return {"10.4",
          "bahdanau",
          tr("Bahdanau attention: translation"),
          {text_step,
           batch_step,
           vocabulary_step,
           baseline_step,
           attention_step,
           masked_loss_step,
           training_step,
           sentences_step,
           heat_map_step,
           swap_step,
           alignment_step,
           beam_example_step,
           beam_step,
           slow(english_step),
           spaces_step,
           slow(kinds_question_step),
           slow(uses_question_step),
           slow(settings_step),
           slow(unmasked_step),
           slow(states_question_step),
           slow(feed_back_step),
           slow(plain_lstm_step),
           slow(output_question_step),
           slow(lstm_step),
           slow(scoring_step)},
          true,
          130,
          20};
}

}  // namespace qkv::labs
