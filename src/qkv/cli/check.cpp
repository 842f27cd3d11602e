// qkv check: proves by perturbation that a trained model does not see anything it must not see.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "qkv/cli/check_task.h"
#include "qkv/cli/command.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/corpus.h"
#include "qkv/data/shuffle.h"
#include "qkv/tasks/kinds.h"
#include "qkv/tasks/language/data.h"
#include "qkv/tasks/language/leaks.h"
#include "qkv/tasks/leaks.h"
#include "qkv/tasks/translation/task.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongest = 200;  // tokens of the longest sentence tried

const char* key_of(Leak kind) {
  switch (kind) {
    case Leak::later_tokens:
      return "later_tokens";
    case Leak::padding:
      return "padding";
    case Leak::batch_mates:
      return "batch_mates";
    case Leak::cache:
      return "cache";
  }
  return "";
}

Text changed(Leak kind) {
  switch (kind) {
    case Leak::later_tokens:
      return tr("change every later target token");
    case Leak::padding:
      return tr("add padding, with other ids in it");
    case Leak::batch_mates:
      return tr("change the other rows of the batch, and their order");
    case Leak::cache:
      return tr("decode one token at a time, with the cache");
  }
  return {};
}

class Check : public Command {
 public:
  std::string name() const override { return "check"; }
  Text summary() const override {
    return tr("proves that a model's outputs depend on no later token, no padding and no batch mate");
  }
  std::string example() const override {
    return "qkv check --model runs/transformer\n  qkv check --model runs/transformer --data pairs.tsv --count 50";
  }

  void bind(Options& o) override {
    o.option("--model DIR", tr("the folder that qkv train wrote, or a pretrained one"), model_);
    o.option("--data FILE",
             tr("tab-separated sentence pairs to try, a text or images (default: random tokens, or drawn pictures)"),
             data_);
    o.option("--count N", tr("number of pairs, pieces of text or images to try, chosen by --seed"), count_, 1, 100'000);
    o.flag("--json", tr("print the result as JSON"), json_);
  }

  int run(const Global& global) override {
    if (model_.empty())
      throw UsageError(tr("the option --model DIR is missing"),
                       tr("qkv train --preset transformer makes one in runs/transformer"));
    switch (run_task(model_)) {
      case TaskKind::translation:
        return check_translation(global);
      case TaskKind::language:
        return check_language(global);
      case TaskKind::vision:
        return check_vision({model_, data_, count_, json_}, global);
      case TaskKind::encoding:
        return check_encoder({model_, data_, count_, json_}, global);
    }
    return 1;
  }

 private:
  using Explain = std::function<Text(const LeakResult&)>;

  int check_translation(const Global& global) const {
    const Translator translator(model_);
    note_unfinished(model_, global);
    const LeakSubject subject = leak_subject(translator);
    const Rng rng = Rng(global.seed).at("check");
    const std::vector<IdPair> pairs =
        data_.empty() ? random_pairs(translator, count_, rng) : pairs_of(translator, subject, rng, global);
    const Text what = data_.empty() ? tr("{model}: sentence pairs of random tokens: {pairs}", "model"_a = model_,
                                         "pairs"_a = pairs.size())
                                    : tr("{model}: sentence pairs of {data}: {pairs}", "model"_a = model_,
                                         "data"_a = data_, "pairs"_a = pairs.size());
    return judge(
        subject, pairs, what, [&](const LeakResult& r) { return explained(r, translator); }, global);
  }

  int check_language(const Global& global) const {
    const LanguageGenerator generator(model_);
    note_unfinished(model_, global);
    const LeakSubject subject = leak_subject(generator);
    const Rng rng = Rng(global.seed).at("check");
    std::vector<IdPair> texts;
    if (data_.empty())
      texts = random_texts(generator, count_, rng);
    else
      texts = pieces_of(generator, encode_text(generator.tokenizer(), read_text(data_), data_), count_, rng);
    require(!texts.empty(), "{data}: has no token", "data"_a = data_);
    const Text what =
        data_.empty()
            ? tr("{model}: texts of random tokens: {texts}", "model"_a = model_, "texts"_a = texts.size())
            : tr("{model}: pieces of {data}: {texts}", "model"_a = model_, "data"_a = data_, "texts"_a = texts.size());
    return judge(
        subject, texts, what, [](const LeakResult& r) { return meaning(r); }, global);
  }

  // Runs the tests and prints their results under the title `what`.
  int judge(const LeakSubject& subject, const std::vector<IdPair>& pairs, const Text& what, const Explain& explain,
            const Global& global) const {
    const LeakOptions options{.seed = global.seed};
    const LeakReport report = leaks(subject, pairs, options);
    if (json_)
      print_json(report, pairs.size());
    else
      print(report, what, options, explain, global);
    return report.passed() ? 0 : 1;
  }

  std::vector<IdPair> pairs_of(const Translator& translator, const LeakSubject& subject, const Rng& rng,
                               const Global& global) const {
    const std::vector<IdPair> all =
        encode_pairs(read_pairs(data_), translator.tokenizers().source, translator.tokenizers().target);
    const size_t most =
        subject.most_positions > 0 ? std::min(kLongest, static_cast<size_t>(subject.most_positions)) : kLongest;
    std::vector<IdPair> out;
    int64_t left_out = 0;
    for (const int64_t i : shuffled(std::ssize(all), rng)) {
      const IdPair& pair = all[static_cast<size_t>(i)];
      if (std::ssize(out) == count_) break;
      if (pair.source.size() > 1 && pair.target.size() > 1 && std::max(pair.source.size(), pair.target.size()) <= most)
        out.push_back(pair);
      else
        ++left_out;
    }
    require(!out.empty(), "{data}: has no pair whose sentences both have 1 to {most} tokens", "data"_a = data_,
            "most"_a = most - 1);
    if (left_out > 0)
      global.note(tr("{data}: pairs left out because a side is empty or has more than {most} tokens: {left_out}",
                     "data"_a = data_, "most"_a = most - 1, "left_out"_a = left_out));
    return out;
  }

  static void print(const LeakReport& report, const Text& what, const LeakOptions& options, const Explain& explain,
                    const Global& global) {
    const auto say = [&](const Text& t) { return t.in(global.language); };
    fmt::print("{}\n", say(what));
    fmt::print("{:>9} {:>14} {:>12}\n", say(tr("tried")), say(tr("scores")), say(tr("largest")));
    for (const LeakResult& r : report.results) {
      std::string verdict = say(r.passed ? tr("ok") : tr("FAILED"));
      if (!r.passed && r.tried > 0)
        verdict += say(
            tr(", largest at output {position} of pair {pair}", "position"_a = r.position + 1, "pair"_a = r.pair + 1));
      fmt::print("{:>9} {:>14} {:>12}  {}: {}\n", r.tried, r.compared,
                 r.largest == 0 ? "0" : fmt::format("{:.2g}", r.largest), say(changed(r.kind)), verdict);
    }
    fmt::print(
        "{}\n",
        say(tr(
            "largest: largest difference of a score, 0 if all bits are equal; for the cache, relative to the largest "
            "score, and at most {cache_tolerance}",
            "cache_tolerance"_a = options.cache_tolerance)));
    fmt::print("{}\n",
               say(tr("control: {noticed} of {controls} changes to inputs that outputs may depend on had an effect",
                      "noticed"_a = report.noticed, "controls"_a = report.controls)));
    if (report.noticed == 0)
      fmt::print(
          "{}\n",
          say(tr("FAILED: even changes that outputs may depend on had no effect, so the other checks prove nothing")));
    for (const LeakResult& r : report.results)
      if (!r.passed) fmt::print("{}\n", say(explain(r)));
  }

  // What a failure of a translation model means.
  static Text explained(const LeakResult& r, const Translator& translator) {
    const TranslationConfig& c = translator.config();
    if (r.tried > 0 && !std::isnan(r.largest) && r.kind == Leak::padding && source_steps(c) > 0)
      return tr(
          "this encoder reads padding on purpose (model.skip_padding is false, as in the book): qkv always pads "
          "its sentences to {num_steps} tokens, as in training, so each sentence has one translation; with other "
          "padding it would have another",
          "num_steps"_a = c.book.num_steps);
    if (r.tried > 0 && !std::isnan(r.largest) && r.kind == Leak::cache && c.book.positions)
      return tr(
          "on purpose this model decodes every token at position 0, as the book's prediction does (book.positions "
          "is true)");
    return meaning(r);
  }

  // What a failure means.
  static Text meaning(const LeakResult& r) {
    if (r.tried == 0)
      return tr("there was nothing to try: the sentences fill every position that the model has learned");
    if (std::isnan(r.largest)) return tr("some scores are not numbers: the weights are broken");
    switch (r.kind) {
      case Leak::later_tokens:
        return tr(
            "an output depends on a later target token: the decoder's self-attention has no causal mask, and its "
            "training loss is too good to be true");
      case Leak::padding:
        return tr("an output depends on padding: some attention or state reaches beyond the length of the sentence");
      case Leak::batch_mates:
        return tr("a sentence's outputs depend on the other sentences of its batch: something is computed across rows");
      case Leak::cache:
        return tr(
            "decoding one token at a time gives other scores than one pass over the whole sentence: a position is "
            "wrong, or keys were not kept or not moved");
    }
    return {};
  }

  void print_json(const LeakReport& report, size_t pairs) const {
    Json out = {{"model", model_},
                {"pairs", pairs},
                {"passed", report.passed()},
                {"controls", report.controls},
                {"noticed", report.noticed}};
    for (const LeakResult& r : report.results)
      out["checks"][key_of(r.kind)] = {{"tried", r.tried},
                                       {"scores", r.compared},
                                       {"largest", std::isnan(r.largest) ? Json(nullptr) : Json(r.largest)},
                                       {"passed", r.passed}};
    fmt::print("{}\n", out.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  std::string model_, data_;
  int64_t count_ = 16;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> check_command() { return std::make_unique<Check>(); }

}  // namespace qkv::cli
