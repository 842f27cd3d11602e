// Lab 10.4: translation with a recurrent encoder and decoder, without attention and with Bahdanau's. Trainings that its
// steps share.
#include "qkv/labs/bahdanau.h"

#include <fmt/format.h>

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/stopwatch.h"

namespace qkv::labs {
namespace bahdanau {
namespace {

// Models and sentences of one page.
struct Workshop {
  std::map<Kind, std::unique_ptr<Trained>> models;
  std::vector<AlignedPair> held_out;
};

struct Recorder : Observer {
  Trained* to = nullptr;
  double tokens = 0;  // of an epoch's targets, without padding, whatever the loss counts
  double first = 0;   // when the first batch of the epoch was done
  void step(const Progress& p) override {
    if (p.batch == 1) first = thread_seconds();
    if (p.batch < p.batches || p.batches < 2) return;
    const double share = static_cast<double>(p.batches - 1) / static_cast<double>(p.batches);
    to->tokens_per_second = std::max(to->tokens_per_second, share * tokens / std::max(thread_seconds() - first, 1e-9));
  }
  void epoch(const Progress& p) override {
    to->epochs.push_back(static_cast<double>(p.epoch));
    to->losses.push_back(p.epoch_loss);
    if (p.valid_loss) to->valid_losses.push_back(*p.valid_loss);
  }
};

bool is_exercise(Kind kind) { return kind != Kind::baseline && kind != Kind::attention && kind != Kind::aligned; }

void turn_into(TranslationConfig& c, Kind kind) {
  if (kind == Kind::baseline) c.model.attention = "none";
  if (kind == Kind::lstm) c.model.cell = "lstm";
  if (kind == Kind::dot) c.model.attention = "scaled-dot";
  if (kind == Kind::unmasked) c.training.mask_loss = false;
  if (kind == Kind::fed_back) c.training.feed_back = 0.5;
}

std::unique_ptr<Trained> train(const TranslationConfig& config) {
  auto model = std::make_unique<Trained>(Trained{TranslationRun(config, ""), {}, {}, {}, 0});
  Recorder recorder;
  recorder.to = model.get();
  const Tokenizer& target = model->run.tokenizers().target;
  for (const std::string& s : model->run.text().train.target)
    recorder.tokens += static_cast<double>(target.encode(s).size() + 1);
  Observer* const observers[] = {&recorder};
  model->run.train(observers);
  return model;
}

TranslationConfig small_config(uint64_t seed) {
  TranslationConfig c = translation_preset("bahdanau");
  c.data.corpus_size = 8000;
  c.data.corpus_seed = static_cast<int64_t>(seed);
  c.model.embed = c.model.hidden = 64;
  c.model.values = TranslationModelConfig{}.values;  // the book's decoder: what is weighted is the encoder's states
  c.model.embed_dropout = 0;
  c.training.epochs = 8;
  c.model.dropout = 0;  // on the weights it spreads them
  c.training.batch_rows = 16;
  c.training.rate = 0.003;
  c.training.schedule = "cosine";
  c.training.num_steps = 18;  // what an unmasked loss pads to: no sentence is longer
  return c;
}

}  // namespace

TranslationConfig config_of(const Page& page, Kind kind) {
  const bool from_file = !page.data().empty() && kind != Kind::aligned;
  TranslationConfig c = from_file ? translation_preset(kind == Kind::baseline ? "d2l-seq2seq" : "d2l-bahdanau")
                                  : small_config(page.seed());
  if (from_file) c.data.pairs = page.data();
  if (is_exercise(kind)) {
    c.training.epochs = from_file ? 100 : 8;
    c.model.bidirectional = false;  // a dot product needs queries as wide as the keys
    if (!from_file) c.data.corpus_size = 3000, c.training.rate = 0.005;
  }
  c.training.seed = static_cast<int64_t>(page.seed());
  turn_into(c, kind);
  return c;
}

const Trained& trained(Page& page, Kind kind) {
  if (kind == Kind::aligned && page.data().empty()) kind = Kind::attention;
  auto& models = page.shared<Workshop>().models;
  if (!models.contains(kind)) {
    std::vector<Kind> together = {Kind::baseline, Kind::attention};
    if (is_exercise(kind))
      together = {Kind::reference, Kind::lstm, Kind::dot, Kind::unmasked, Kind::fed_back};
    else if (!page.data().empty())
      together.push_back(Kind::aligned);
    for (const Kind k : together) models[k];
    // Models this small leave nothing to share within a step: each has a thread of its own instead.
    parallel_for(static_cast<int64_t>(together.size()), 1e12, [&](int64_t i) {
      const SerialScope serial;
      const Kind k = together[static_cast<size_t>(i)];
      models.at(k) = train(config_of(page, k));
    });
  }
  return *models.at(kind);
}

bool is_books_data(Page& page) {
  if (page.data().empty()) return false;
  const TranslationRun& run = trained(page, Kind::attention).run;
  return run.training_pairs() == 601 && run.tokenizers().source.size() == 184 && run.tokenizers().target.size() == 201;
}

const std::vector<AlignedPair>& held_out(Page& page) {
  std::vector<AlignedPair>& pairs = page.shared<Workshop>().held_out;
  if (!pairs.empty()) return pairs;
  const TranslationRun& run = trained(page, Kind::aligned).run;
  const TranslationDataConfig& data = run.config().data;
  const auto knows = [](const Tokenizer& tokenizer, const std::string& sentence) {
    const auto ids = tokenizer.encode(sentence);
    return std::find(ids.begin(), ids.end(), tokenizer.unk()) == ids.end();
  };
  for (AlignedPair& pair :
       en_fr_split({.size = data.corpus_size, .seed = static_cast<uint64_t>(data.corpus_seed)}).test)
    if (knows(run.tokenizers().source, pair.source) && knows(run.tokenizers().target, pair.target))
      pairs.push_back(std::move(pair));
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

SentencePairs sentences_of(std::span<const AlignedPair> pairs) {
  SentencePairs out;
  for (const AlignedPair& pair : pairs) out.source.push_back(pair.source), out.target.push_back(pair.target);
  return out;
}

std::vector<std::string> translate(const Trained& model, const std::vector<std::string>& sentences) {
  const Translator translator = model.translator();
  std::vector<std::string> out;
  for (const Translation& t : translator.translate(sentences, translator.defaults()))
    out.push_back(t.hypotheses.empty() ? "" : translator.text(t.hypotheses[0]));
  return out;
}

double share_exact(const std::vector<std::string>& written, const std::vector<std::string>& wanted) {
  double same = 0;
  for (size_t i = 0; i < written.size(); ++i) same += written[i] == wanted[i];
  return same / static_cast<double>(std::max<size_t>(written.size(), 1));
}

double forced_loss(const Trained& model, const SentencePairs& pairs) {
  double sum = 0, count = 0;
  for (const ForcedTranslation& t : model.translator().force(pairs)) {
    sum -= t.forced.log_probability();
    count += static_cast<double>(t.target.size());
  }
  return sum / std::max(count, 1.0);
}

}  // namespace bahdanau

Lab bahdanau_lab() {
  using namespace bahdanau;
  return {"10.4",
          "bahdanau",
          {"Bahdanau attention: translation", "Bahdanau 注意力：机器翻译"},
          {text_step, batch_step, vocabulary_step, baseline_step, attention_step, masked_loss_step, training_step,
           sentences_step, heat_map_step, swap_step, alignment_step, lstm_step, scoring_step, unmasked_step,
           feed_back_step, beam_example_step, beam_step, questions_step},
          true};
}

}  // namespace qkv::labs
