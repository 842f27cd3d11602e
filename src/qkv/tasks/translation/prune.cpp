// Smaller models as values and as folders.
#include "qkv/tasks/translation/prune.h"

#include <algorithm>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/eval/metrics.h"
#include "qkv/io/atomic_file.h"
#include "qkv/tasks/translation/data.h"
#include "qkv/tasks/translation/head_importance.h"

namespace qkv {

PrunedModel pruned_model(const Translator& translator, const KeptUnits& kept) {
  const Transformer* model = translator.model().transformer();
  require(model != nullptr, "the model is a seq2seq model with one attention: only a Transformer has heads to remove");
  PrunedModel out{translator.config(), nullptr};
  out.config.model = pruned(model->config, kept);
  out.config.check_model();
  out.model = std::make_unique<TranslationModel>(out.config, translator.tokenizers().sizes(), Rng(0));
  const std::map<std::string, Tensor> weights = pruned(translator.model().parameters(), model->config, kept);
  const Parameters& parameters = out.model->parameters();
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const Tensor& from = weights.at(parameters.entries()[i].name);
    check(from.shape() == parameters.entries()[i].shape, "[prune] ", parameters.entries()[i].name, " has shape ",
          from.shape(), ", expected ", parameters.entries()[i].shape);
    std::copy_n(from.ptr(), from.numel(), parameters.values(i).mutable_ptr());
  }
  return out;
}

void save_pruned(const PrunedModel& pruned, const Tokenizers& tokenizers, const std::string& folder) {
  require(!std::filesystem::exists(folder), "{folder}: already exists; choose another folder with -o",
          "folder"_a = folder);
  make_folder(folder);
  save_tokenizers(tokenizers, folder);
  pruned.model->save(folder + "/model.safetensors");
  TranslationConfig config = pruned.config;
  write_file(folder + "/config.yaml", config.settings().dump());
}

int64_t products_per_token(const Parameters& parameters) {
  int64_t count = 0;
  for (const Parameters::Entry& entry : parameters.entries())
    if (entry.shape.rank() == 2 && !entry.name.ends_with("embedding.weight") && !entry.name.ends_with("positions") &&
        !entry.name.ends_with("table"))
      count += entry.shape.numel();
  // A tied output layer has the name of the embedding that it shares.
  const auto output = std::ranges::find_if(
      parameters.entries(), [](const Parameters::Entry& entry) { return entry.name.ends_with("output.weight"); });
  if (output == parameters.entries().end())
    for (const Parameters::Entry& entry : parameters.entries())
      if (entry.name.ends_with("embedding.weight")) return count + entry.shape.numel();
  return count;
}

TranslationQuality quality_of(const Translator& translator, const SentencePairs& pairs, const AttentionEdits& edits) {
  TranslateOptions options = translator.defaults();
  options.beam = 1;
  options.edits = edits;
  std::vector<std::string> written;
  for (const Translation& one : translator.translate(pairs.source, options))
    written.push_back(one.hypotheses.empty() ? "" : translator.text(one.hypotheses[0], one.writing));
  const auto metric =
      make_metric("bleu", {.bleu = {}, .d2l_k = 2, .lowercase = translator.tokenizers().target.is_lower()});
  const SegmentCounts counts = count_segments(*metric, written, {pairs.target});
  return {.loss = forced_loss(translator, pairs, edits),
          .bleu = metric->score(counts.sums()),
          .interval = interval95(bootstrap_scores(*metric, counts))};
}

SentencePairs measuring_pairs(const Translator& translator, const std::string& folder, int64_t count) {
  const TranslationConfig& config = translator.config();
  if (!config.has_data())
    throw Error(tr("{folder}: names no sentence pairs to measure with", "folder"_a = folder),
                tr("--data FILE names tab-separated ones"));
  const TranslationText text = read_translation_text(config.data, static_cast<uint64_t>(config.training.seed), folder);
  return (text.valid.size() > 0 ? text.valid : text.train).part(0, count);
}

}  // namespace qkv
