// Continues prompts in batches, fills gaps, scores texts.
#include "qkv/tasks/language/generator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/core/check.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/decode/generate.h"
#include "qkv/models/attention_paths.h"
#include "qkv/ops/softmax.h"
#include "qkv/run/model_file.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/language/data.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/language.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

// The number of bytes at the end of a text that may be the beginning of a stop string.
size_t held_back(std::string_view text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops)
    for (size_t n = std::min(stop.size() - 1, text.size()); n > most; --n)
      if (text.ends_with(std::string_view(stop).substr(0, n))) most = n;
  return most;
}

// A text while it is written: finds stop strings, and passes on what is final.
class Written {
 public:
  Written(const TextTokenizer& tokenizer, std::span<const int32_t> prompt, const GenerateOptions& options)
      : stream_(tokenizer, prompt), options_(options) {}

  using Show = std::function<void(const std::string& piece)>;
  /// Returns whether a stop string was found.
  bool add(int32_t token, const Show& show) { return grown(stream_.add(token), show); }
  void end(const Show& show) {
    if (stopped_ || grown(stream_.end(), show)) return;
    pass(text_.size(), show);
  }
  const std::string& text() const { return text_; }
  bool stopped() const { return stopped_; }

 private:
  bool grown(const std::string& piece, const Show& show) {
    const size_t before = text_.size();
    text_ += piece;
    size_t first = std::string::npos;
    for (const std::string& stop : options_.stops)
      first = std::min(first, text_.find(stop, before - std::min(before, stop.size() - 1)));
    stopped_ = first != std::string::npos;
    if (stopped_) text_.resize(first);
    pass(stopped_ ? first : text_.size() - held_back(text_, options_.stops), show);
    return stopped_;
  }
  void pass(size_t end, const Show& show) {
    if (show && end > passed_) show(text_.substr(passed_, end - passed_));
    passed_ = std::max(passed_, end);
  }

  TextStream stream_;
  const GenerateOptions& options_;
  std::string text_;
  size_t passed_ = 0;
  bool stopped_ = false;
};

// The decoder of an encoder-decoder model that has read one text.
class PairSteps : public StepModel {
 public:
  PairSteps(const Transformer& model, const Ids& read, const Run& run)
      : model_(model), run_(run), state_(model.start(read, {}, run)) {}
  Tensor step(const Ids& tokens) override { return model_.step(state_, tokens, run_); }
  void select(std::span<const int32_t> rows) override { model_.select(state_, rows); }

 private:
  const Transformer& model_;
  Run run_;
  Transformer::State state_;
};

SampleOptions sampling(const GenerateOptions& o) {
  return {.samples = o.samples,
          .temperature = o.temperature,
          .top_k = o.top_k,
          .top_p = o.top_p,
          .repetition_penalty = o.repetition_penalty,
          .seed = o.seed,
          .max_length = o.max_tokens,
          .end = kNoEnd,
          .watch = {.stop = o.stop}};
}

// A run that edits; the probe must outlive it. Without edits there is no probe at all.
Run edited_run(EditProbe& probe) { return {.probe = probe.edits().empty() ? nullptr : &probe}; }

Ids row_of(const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); }

std::unique_ptr<LanguageModel> read_model(const std::string& folder, const LanguageConfig& config, int64_t tokens) {
  const SafetensorsFile file(run_weights(folder));
  check_layout(file, config.model.layout(tokens));
  auto model = std::make_unique<LanguageModel>(config.model, tokens, Rng(0));
  read_weights(file, flatten(*model));
  return model;
}

LanguageConfig read_config(const std::string& folder) {
  const std::string path = run_config_path(folder, LanguageConfig::kTask);
  LanguageConfig config = read_language_config(path);
  try {
    config.model.check();
  } catch (const Error& e) {
    throw Error(tr("{path}: {problem}", "path"_a = path, "problem"_a = e.message()), e.hint());
  }
  return config;
}

}  // namespace

double TextScore::perplexity() const { return std::exp(nats_per_token()); }
double TextScore::bits_per_character() const {
  return nats / std::numbers::ln2 / static_cast<double>(std::max<int64_t>(characters, 1));
}

struct LanguageGenerator::Opened : PretrainedLanguage {};

LanguageGenerator::Opened LanguageGenerator::opened(const std::string& folder) {
  if (is_pretrained_folder(folder)) return {open_pretrained_language(folder)};
  const LanguageConfig config = read_config(folder);
  const TextTokenizer tokenizer = TextTokenizer::load(folder);
  return {{.config = config, .tokenizer = tokenizer, .model = read_model(folder, config, tokenizer.size())}};
}

LanguageGenerator::LanguageGenerator(Opened opened)
    : config_(std::move(opened.config)),
      tokenizer_(std::move(opened.tokenizer)),
      own_(std::move(opened.model)),
      model_(own_.get()) {}

LanguageGenerator::LanguageGenerator(const std::string& folder) : LanguageGenerator(opened(folder)) {}

LanguageGenerator::LanguageGenerator(const LanguageModel& model, TextTokenizer tokenizer, const LanguageConfig& config)
    : config_(config), tokenizer_(std::move(tokenizer)), model_(&model) {}

GenerateOptions LanguageGenerator::defaults() const {
  const GenerationConfig& d = config_.decoding;
  return {.temperature = d.temperature,
          .top_p = d.top_p,
          .repetition_penalty = d.repetition_penalty,
          .top_k = d.top_k,
          .max_tokens = d.max_tokens,
          .rows = d.batch_rows};
}

// Special tokens are never written.
std::vector<int32_t> LanguageGenerator::never() const {
  std::vector<int32_t> out = tokenizer_.never();
  const std::vector<int32_t>& more = config_.decoding.never;
  out.insert(out.end(), more.begin(), more.end());
  for (int64_t i = 0; i < config_.model.special_tokens(); ++i)
    out.push_back(static_cast<int32_t>(tokenizer_.size() + i));
  return out;
}

std::vector<Continued> LanguageGenerator::generate(std::span<const std::string> prompts,
                                                   const GenerateOptions& options) const {
  require(objective() == LanguageObjective::causal,
          "this model does not continue texts (model.objective is {objective}): it fills gaps, written {gap}",
          "objective"_a = objective(), "gap"_a = kGap);
  for (const std::string& stop : options.stops) require(!stop.empty(), "a stop string is empty");
  check_edits(options.edits, config_.model.facts());
  EditProbe editor(options.edits);
  const int64_t context = config_.model.context;
  std::vector<Continued> out(prompts.size());
  for (size_t begin = 0; begin < prompts.size(); begin += static_cast<size_t>(options.rows)) {
    const size_t end = std::min(begin + static_cast<size_t>(options.rows), prompts.size());
    std::vector<std::vector<int32_t>> read;
    std::vector<int32_t> first;
    std::vector<std::vector<Written>> written;
    for (size_t p = begin; p < end; ++p) {
      std::vector<int32_t> ids = encode_text(tokenizer_, prompts[p], tr("the prompt"));
      out[p].prompt = ids;
      out[p].unread = std::max<int64_t>(0, std::ssize(ids) - context);
      out[p].texts.resize(static_cast<size_t>(options.samples));
      if (ids.empty()) {
        require(tokenizer_.begin() >= 0,
                "the prompt is empty, and the vocabulary has no line end to begin with: give at least one token");
        ids.push_back(tokenizer_.begin());
      }
      written.emplace_back(static_cast<size_t>(options.samples), Written(tokenizer_, out[p].prompt, options));
      first.push_back(ids.back());
      read.push_back(std::move(ids));
    }
    const auto show = [&](size_t p, size_t s) -> Written::Show {
      if (!options.on_text) return {};
      return [&, p, s](const std::string& piece) { options.on_text(p, s, piece); };
    };
    SampleOptions sampled = sampling(options);
    sampled.never = never();
    sampled.read = read;
    sampled.ends = [&](size_t row, size_t s, int32_t token) {
      const std::vector<int32_t>& ends = config_.decoding.ends;
      if (std::ranges::find(ends, token) == ends.end()) return written[row][s].add(token, show(begin + row, s));
      out[begin + row].texts[s].end = TextEnd::end;
      return true;
    };
    sampled.watch.on_token = [&](const WrittenToken& token) {
      GeneratedText& text = out[begin + token.sentence].texts[token.sample];
      text.tokens.push_back(token.token);
      text.log_probabilities.push_back(token.log_probability);
    };
    PromptedSteps steps(*model_->single, std::span<const std::vector<int32_t>>(read), context,
                        edited_run(editor).at("decoder"));
    sample(steps, first, std::vector<uint64_t>(first.size(), 0), sampled);
    for (size_t p = begin; p < end; ++p)
      for (size_t s = 0; s < written[p - begin].size(); ++s) {
        Written& text = written[p - begin][s];
        text.end(show(p, s));
        out[p].texts[s].text = text.text();
        if (text.stopped()) out[p].texts[s].end = TextEnd::stop;
      }
  }
  return out;
}

LanguageGenerator::Gapped LanguageGenerator::gapped(const std::string& prompt) const {
  Gapped out;
  const bool masked = objective() == LanguageObjective::masked;
  const auto add = [&](const std::string& part) {
    const std::vector<int32_t> ids = encode_text(tokenizer_, part, tr("the prompt"));
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  };
  size_t begin = 0;
  for (size_t at = prompt.find(kGap); at != std::string::npos && objective() != LanguageObjective::causal;
       at = prompt.find(kGap, begin)) {
    add(prompt.substr(begin, at - begin));
    out.places.push_back(out.ids.size());
    out.ids.push_back(masked ? model_->mask() : model_->mark(std::ssize(out.places) - 1));
    begin = at + kGap.size();
  }
  add(prompt.substr(begin));
  return out;
}

Filled LanguageGenerator::fill(const std::string& prompt, int64_t candidates, const GenerateOptions& options) const {
  require(objective() != LanguageObjective::causal,
          "this model does not fill gaps (model.objective is causal): it continues texts");
  Gapped gaps = gapped(prompt);
  if (objective() == LanguageObjective::spans && gaps.places.empty()) {
    gaps.places.push_back(gaps.ids.size());
    gaps.ids.push_back(model_->mark(0));
  }
  require(!gaps.places.empty(), "the prompt has no gap: write {gap} where a token is missing", "gap"_a = kGap);
  require(std::ssize(gaps.ids) <= config_.model.context,
          "the prompt has {tokens} tokens, but the model reads {context} at once", "tokens"_a = gaps.ids.size(),
          "context"_a = config_.model.context);
  check_edits(options.edits, config_.model.facts());
  const TapePause pause;
  return objective() == LanguageObjective::masked ? fill_masks(gaps, candidates, options.edits)
                                                  : fill_spans(gaps, options);
}

Filled LanguageGenerator::fill_masks(const Gapped& prompt, int64_t candidates, const AttentionEdits& edits) const {
  EditProbe editor(edits);
  const Tensor x = model_->features(row_of(prompt.ids), edited_run(editor));
  const int64_t width = x.size(2);
  std::vector<int32_t> filled = prompt.ids;
  Filled out;
  for (const size_t place : prompt.places) {
    const Tensor scores = softmax(model_->output()(x.part(static_cast<int64_t>(place) * width, {1, width}).detached()));
    std::vector<Candidate> all;
    for (int32_t id = 0; id < tokenizer_.size(); ++id) all.push_back({id, scores.ptr()[id]});
    for (const int32_t id : tokenizer_.never()) std::erase_if(all, [&](const Candidate& c) { return c.token == id; });
    const auto count = std::min(std::max<std::ptrdiff_t>(candidates, 1), std::ssize(all));
    std::partial_sort(all.begin(), all.begin() + count, all.end(), [](const Candidate& a, const Candidate& b) {
      return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
    });
    all.resize(static_cast<size_t>(count));
    filled[place] = all.front().token;
    out.gaps.push_back(std::move(all));
  }
  out.text = valid_utf8(tokenizer_.decode(filled));
  return out;
}

Filled LanguageGenerator::fill_spans(const Gapped& prompt, const GenerateOptions& options) const {
  const int64_t gaps = std::ssize(prompt.places), most = config_.model.marks() - 1;
  require(gaps <= most, "the prompt has {gaps} gaps, but the model was trained with {most}", "gaps"_a = gaps,
          "most"_a = most);
  EditProbe editor(options.edits);
  PairSteps steps(*model_->pair, row_of(prompt.ids), edited_run(editor));
  SampleOptions sampled = sampling(options);
  sampled.samples = 1;
  sampled.end = model_->mark(gaps);
  sampled.max_length = std::min<int64_t>(options.max_tokens, config_.model.stacks().max_positions - 1);
  sampled.never = tokenizer_.never();
  for (int64_t mark = gaps + 1; mark <= config_.model.marks(); ++mark) sampled.never.push_back(model_->mark(mark));
  const int32_t first = model_->begin();
  const uint64_t number = 0;
  const Hypothesis found = sample(steps, std::span(&first, 1), std::span(&number, 1), sampled).front().front();
  std::vector<std::vector<int32_t>> spans(static_cast<size_t>(gaps));
  size_t span = 0;
  for (const int32_t id : found.tokens) {
    if (id >= model_->mark(0))
      span = static_cast<size_t>(id - model_->mark(0));
    else if (span < spans.size())
      spans[span].push_back(id);
  }
  Filled out;
  std::vector<int32_t> whole;
  for (size_t i = 0, gap = 0; i < prompt.ids.size(); ++i) {
    if (gap < prompt.places.size() && prompt.places[gap] == i) {
      out.spans.push_back(valid_utf8(tokenizer_.decode(spans[gap])));
      whole.insert(whole.end(), spans[gap].begin(), spans[gap].end());
      ++gap;
    } else {
      whole.push_back(prompt.ids[i]);
    }
  }
  out.text = valid_utf8(tokenizer_.decode(whole));
  out.log_probability = found.log_probability;
  return out;
}

TextScore LanguageGenerator::score(const std::string& text, const Text& name) const {
  const std::vector<int32_t> ids = encode_text(tokenizer_, text, name);
  require(std::ssize(ids) >= 2, "{name}: has {tokens}; a score needs at least 2", "name"_a = name,
          "tokens"_a = token_count(ids.size()));
  const TextLoss loss = text_loss(*model_, ids, Rng(0).at("validation"));
  TextScore out{
      .tokens = std::ssize(ids), .characters = count_characters(text), .nats = loss.sum, .scored = loss.count};
  if (tokenizer_.unk() >= 0) out.unknown = std::ranges::count(ids, tokenizer_.unk());
  return out;
}

LanguageBatch LanguageGenerator::batch_of(const std::string& text) const {
  Gapped gaps = gapped(text);
  require(!gaps.ids.empty(), "the text is empty");
  require(std::ssize(gaps.ids) <= config_.model.context,
          "the text has {tokens} tokens, but the model reads {context} at once", "tokens"_a = gaps.ids.size(),
          "context"_a = config_.model.context);
  LanguageBatch out{.read = row_of(gaps.ids), .written = {}, .wanted = {}};
  if (objective() == LanguageObjective::spans) out.written = row_of({model_->begin()});
  return out;
}

std::vector<std::string> LanguageGenerator::unknown(std::string text) const {
  if (objective() != LanguageObjective::causal)
    for (size_t at = text.find(kGap); at != std::string::npos; at = text.find(kGap, at))
      text.replace(at, kGap.size(), " ");
  std::vector<std::string> out = tokenizer_.unknown(text);
  std::erase(out, " ");
  return out;
}

std::vector<std::string> LanguageGenerator::tokens(std::span<const int32_t> ids) const {
  std::vector<std::string> out;
  for (const int32_t id : ids) {
    if (id < tokenizer_.size())
      out.push_back(tokenizer_.tokens(std::span(&id, 1)).front());
    else if (objective() == LanguageObjective::masked)
      out.emplace_back(kGap);
    else
      out.push_back(id == model_->begin() ? std::string(kBegin) : qkv::text("<", id - tokenizer_.size(), ">"));
  }
  return out;
}

}  // namespace qkv
