// Training in memory, with measurements.
#include "qkv/labs/trained.h"

#include <algorithm>

#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"

namespace qkv::labs {
namespace {

struct Recorder : Observer {
  Trained* to = nullptr;
  double tokens = 0;  // in the targets of an epoch, without padding, even if the loss counts it
  double first = 0;   // time at which the first batch of the epoch was done
  void step(const Progress& p) override {
    if (p.batch == 1) first = thread_seconds();
    if (p.batch < p.batches || p.batches < 2) return;
    const double took = std::max(thread_seconds() - first, 1e-9), steps = static_cast<double>(p.batches - 1);
    const double rate = steps / static_cast<double>(p.batches) * tokens / took;
    if (rate <= to->tokens_per_second) return;
    to->tokens_per_second = rate;
    to->step_seconds = took / steps;
  }
  void epoch(const Progress& p) override {
    to->epochs.push_back(static_cast<double>(p.epoch));
    to->losses.push_back(p.epoch_loss);
    if (p.valid_loss) to->valid_losses.push_back(*p.valid_loss);
  }
};

}  // namespace

std::unique_ptr<Trained> train(const TranslationConfig& config, Observer* follower) {
  auto model = std::make_unique<Trained>(Trained{TranslationRun(config, ""), {}, {}, {}, 0, 0});
  Recorder recorder;
  recorder.to = model.get();
  const Tokenizer& target = model->run.tokenizers().target;
  for (const std::string& s : model->run.text().train.target)
    recorder.tokens += static_cast<double>(target.encode(s).size() + 1);
  std::vector<Observer*> observers = {&recorder};
  if (follower) observers.push_back(follower);
  model->run.train(observers);
  return model;
}

Text training_of(const std::vector<Text>& names) {
  if (names.size() == 1) return tr("training {model}", "model"_a = names[0]);
  return tr("training {count} models: {names}", "count"_a = names.size(), "names"_a = in_list(names));
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

std::vector<AlignedPair> held_out_pairs(const TranslationRun& run) {
  const TranslationDataConfig& data = run.config().data;
  const auto knows = [](const Tokenizer& tokenizer, const std::string& sentence) {
    const auto ids = tokenizer.encode(sentence);
    return std::find(ids.begin(), ids.end(), tokenizer.unk()) == ids.end();
  };
  std::vector<AlignedPair> pairs;
  for (AlignedPair& pair :
       en_fr_split({.size = data.corpus_size, .seed = static_cast<uint64_t>(data.corpus_seed)}).test)
    if (knows(run.tokenizers().source, pair.source) && knows(run.tokenizers().target, pair.target))
      pairs.push_back(std::move(pair));
  return pairs;
}

SentencePairs sentences_of(std::span<const AlignedPair> pairs) {
  SentencePairs out;
  for (const AlignedPair& pair : pairs) {
    out.source.push_back(pair.source);
    out.target.push_back(pair.target);
  }
  return out;
}

}  // namespace qkv::labs
