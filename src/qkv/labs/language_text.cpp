// Lab 11.9: the words of the built-in corpus, and the training of language models on them.
#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/labs/language.h"
#include "qkv/labs/work.h"
#include "qkv/nn/module.h"
#include "qkv/train/optimizer.h"

namespace qkv::labs::language {
namespace {

constexpr size_t kTestSentences = 1500, kLabelledSentences = 6500;

LanguageConfig configuration(const ReaderPlan& plan, uint64_t seed) {
  LanguageConfig c;
  c.data.order = BlockOrder::random;
  c.data.epoch_batches = plan.steps / plan.measures;
  c.model.objective = plan.objective;
  c.model.context = kContext;
  c.model.mask_share = 0.3;
  c.model.span_length = 2;
  c.model.transformer.positions = PositionKind::rotary;
  c.model.transformer.hidden = plan.width;
  c.model.transformer.ffn = 4 * plan.width;
  c.model.transformer.heads = plan.width >= 32 ? 4 : 2;
  c.model.transformer.layers = 2;
  c.model.transformer.dropout = 0;
  c.training.batch_rows = kBatchRows;
  c.training.seed = static_cast<int64_t>(seed);
  return c;
}

// Rises for 30 steps, then falls with the root of the step: good wherever the training is cut off.
Schedule root_rate(float rate) {
  return [rate](int64_t step) {
    const auto s = static_cast<float>(step + 1);
    return rate * std::min(s / 30, std::sqrt(30 / s));
  };
}

}  // namespace

WordText read_words(uint64_t seed) {
  LanguageDataConfig c;
  c.tokenizer = TextTokens::words;
  c.corpus_size = 28000;
  c.corpus_seed = static_cast<int64_t>(seed) + 1;
  LanguageText read = read_language_text(c);
  WordText out;
  out.tokenizer = read.tokenizer;
  out.train = std::move(read.train_ids);
  // The corpus' own validation sentences pair words that training never pairs; these here only have new wording.
  const auto cut_off = [&](size_t sentences) {
    size_t cut = out.train.size() - 1;
    for (size_t ends = 0; cut > 0 && ends < sentences; --cut) ends += out.train[cut - 1] == out.tokenizer.line_end();
    ++cut;
    const std::vector<int32_t> end(out.train.begin() + static_cast<int64_t>(cut), out.train.end());
    out.train.resize(cut);
    return end;
  };
  out.test = cut_off(kTestSentences);
  out.labelled = cut_off(kLabelledSentences);
  return out;
}

std::vector<std::vector<int32_t>> WordText::sentences(const std::vector<int32_t>& ids) const {
  std::vector<std::vector<int32_t>> out(1);
  for (const int32_t id : ids)
    if (id == tokenizer.line_end())
      out.emplace_back();
    else
      out.back().push_back(id);
  out.pop_back();
  return out;
}

Reader trained_reader(const ReaderPlan& plan, const WordText& text, const std::vector<int32_t>& train, uint64_t seed,
                      Observer& observer) {
  const LanguageConfig c = configuration(plan, seed);
  Reader out{LanguageModel(c.model, text.tokenizer.size(), Rng(seed).at("reader").at("init")), {}, {}};
  std::vector<int32_t> test = text.test;
  if (plan.test_words > 0) test.resize(static_cast<size_t>(plan.test_words));
  const LanguageTask task(out.model, c, train, std::move(test), "en-fr");
  Adam adam = adamw(0.01f);
  Observer* observers[] = {&observer};
  fit(flatten(out.model), adam,
      {.epochs = plan.measures,
       .rate = plan.open_end ? root_rate(plan.rate) : cosine_rate(plan.rate, plan.steps, 50),
       .clip = 1,
       .seed = seed,
       .on_epoch =
           [&](const Progress& p) {
             out.tokens.push_back(static_cast<double>(p.step * kBatchRows * kContext));
             out.loss.push_back(task.validate());
           }},
      task, observers);
  return out;
}

const Readers& readers(Page& page) {
  Readers& r = page.shared<Readers>();
  if (!r.causal.loss.empty()) return r;
  r.text = read_words(page.seed());
  // The longest training first, so that two cores end at about the same time.
  const std::pair<Reader*, ReaderPlan> tasks[] = {
      {&r.spans, {.objective = LanguageObjective::spans, .steps = kSpansSteps}},
      {&r.masked, {.objective = LanguageObjective::masked, .steps = kMaskedSteps}},
      {&r.causal, {.objective = LanguageObjective::causal, .steps = kCausalSteps}}};
  Work work(page, tr("training three language models"), std::size(tasks));
  parallel_for(std::ssize(tasks), 1e10, [&](int64_t i) {
    const SerialScope serial;
    WorkObserver follower(work, static_cast<size_t>(i));
    *tasks[i].first = trained_reader(tasks[i].second, r.text, r.text.train, page.seed(), follower);
  });
  return r;
}

}  // namespace qkv::labs::language
