// qkv prune: removes the least important heads of a Transformer, or compares ways to say which those are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/cli/status_line.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/data/corpus.h"
#include "qkv/plot/figure.h"
#include "qkv/plot/save.h"
#include "qkv/tasks/translation/head_importance.h"
#include "qkv/tasks/translation/prune.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;
using Importance = std::vector<std::vector<double>>;

std::vector<double> in_one_list(const Importance& importance) {
  std::vector<double> out;
  for (const auto& units : importance) out.insert(out.end(), units.begin(), units.end());
  return out;
}

// "encoder.0.self:1,3" -> path and heads, counted from 1.
struct Removal {
  std::string path;
  std::vector<int64_t> heads;
};
Removal parse_removal(const std::string& given) {
  const size_t colon = given.rfind(':');
  Removal out{given.substr(0, colon), {}};
  const auto refuse_it = [&] {
    throw UsageError(
        tr("--remove: expected PATH:HEADS such as encoder.0.self:1,3, got \"{given}\"", "given"_a = given));
  };
  if (colon == given.npos || colon == 0) refuse_it();
  for (const std::string& word : split(given.substr(colon + 1), ',')) {
    if (word.empty() || word.size() > 4 || word.find_first_not_of("0123456789") != word.npos) refuse_it();
    out.heads.push_back(std::stoll(word));
  }
  return out;
}

class Prune : public Command {
 public:
  std::string name() const override { return "prune"; }
  Text summary() const override { return tr("removes the heads of a Transformer that matter least"); }
  std::string example() const override {
    return "qkv prune --model runs/transformer --keep 0.5 -o runs/smaller\n"
           "  qkv train --init runs/smaller --epochs 2 -o runs/tuned\n"
           "  qkv prune --model runs/transformer --compare";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("the folder that qkv train wrote, with a Transformer that translates"), model_);
    options.option(
        "--by MEASURE",
        tr("what makes a head important: the slope of the loss at a gate on it, the rise of the loss without "
           "it, its largest weights, or the entropy of its weights"),
        by_);
    options.option("--keep X", tr("share of the heads that stay, above 0 and below 1; every attention keeps one"),
                   keep_);
    options.option("--remove PATH:HEADS",
                   tr("remove these heads instead, counted from 1: encoder.0.self:1,3; may be repeated"), remove_);
    options.option("-o,--output DIR", tr("folder of the smaller model, which must not exist"), output_);
    options.option("--data FILE", tr("tab-separated sentence pairs to measure with (default: those of the run)"),
                   data_);
    options.option("--sentences N", tr("number of sentence pairs to measure with"), sentences_, 1, 1'000'000);
    options.flag("--compare", tr("print all four measures of every head, and how far their rankings agree"), compare_);
    options.flag("--bleu", tr("with --compare: also BLEU without each head, which takes longer"), bleu_);
    options.flag("--curve", tr("print loss and BLEU, with intervals, against the share of heads that is kept"), curve_);
    options.option("--plot FILE", tr("with --curve: draw it to .svg, .png or .txt"), plot_);
    options.flag("--json", tr("print one JSON object"), json_);
  }

  int run(const Global& global) override;

 private:
  void check_options() const;
  KeptUnits named_units(const std::vector<PrunableAttention>& places, const TransformerConfig& config) const;
  Importance measured(const Translator& translator, const SentencePairs& pairs, ImportanceBy by,
                      const Global& global) const;
  void compare(const Translator& translator, const SentencePairs& pairs, const Global& global) const;
  void curve(const Translator& translator, const SentencePairs& pairs, const Global& global) const;
  void prune(const Translator& translator, const SentencePairs& pairs, const Global& global) const;

  std::string model_, output_;
  std::optional<std::string> data_, plot_;
  std::optional<double> keep_;
  std::vector<std::string> remove_;
  ImportanceBy by_ = ImportanceBy::gate;
  int64_t sentences_ = 200;
  bool compare_ = false, bleu_ = false, curve_ = false, json_ = false;
};

void Prune::check_options() const {
  if (model_.empty())
    throw UsageError(tr("the option --model DIR is missing"),
                     tr("qkv train --preset transformer makes one in runs/transformer"));
  if (keep_ && !(*keep_ > 0 && *keep_ < 1))
    throw UsageError(tr("--keep: expected a number above 0 and below 1, got {keep}", "keep"_a = *keep_));
  if (keep_ && !remove_.empty()) throw UsageError(tr("--keep and --remove exclude each other"));
  if (bleu_ && !compare_) throw UsageError(tr("--bleu goes with --compare"));
  if (plot_ && !curve_) throw UsageError(tr("--plot goes with --curve"));
  const bool removes = keep_ || !remove_.empty();
  if (!removes && !compare_ && !curve_)
    throw UsageError(tr("nothing to do: give --keep X, --remove PATH:HEADS, --compare or --curve"));
  if (removes && output_.empty()) throw UsageError(tr("the option -o DIR is missing"));
  if (!removes && !output_.empty()) throw UsageError(tr("-o goes with --keep or --remove"));
  if (plot_) check_figure_path(*plot_);
  require(output_.empty() || !std::filesystem::exists(output_),
          "{folder}: already exists; choose another folder with -o", "folder"_a = output_);
}

// Without the heads that --remove names; with shared keys a unit goes as a whole.
KeptUnits Prune::named_units(const std::vector<PrunableAttention>& places, const TransformerConfig& config) const {
  KeptUnits kept;
  std::vector<std::string> paths;
  for (const PrunableAttention& place : places) {
    paths.push_back(place.path);
    kept.emplace_back();
    for (int64_t u = 0; u < place.units; ++u) kept.back().push_back(u);
  }
  for (const std::string& given : remove_) {
    const Removal removal = parse_removal(given);
    const auto at = std::ranges::find(paths, removal.path);
    require(at != paths.end(), "there is no attention at {path}: this model has {paths}", "path"_a = removal.path,
            "paths"_a = listed(paths));
    const auto index = static_cast<size_t>(at - paths.begin());
    const int64_t heads = places[index].units * config.shared_heads();
    for (const int64_t head : removal.heads) {
      require(head >= 1 && head <= heads, "{path} has no head {head}: it has {heads}, counted from 1",
              "path"_a = removal.path, "head"_a = head, "heads"_a = heads);
      std::erase(kept[index], (head - 1) / config.shared_heads());
    }
  }
  return kept;
}

Importance Prune::measured(const Translator& translator, const SentencePairs& pairs, ImportanceBy by,
                           const Global& global) const {
  StatusLine status(global);
  return head_importance(translator, pairs, by, [&](double done) {
    status.share(tr("importance by {by}", "by"_a = by).in(global.language), done, global.language);
  });
}

void Prune::compare(const Translator& translator, const SentencePairs& pairs, const Global& global) const {
  const TransformerConfig& config = translator.model().transformer()->config;
  const std::vector<PrunableAttention> places = prunable_attentions(config);
  std::vector<Importance> all;
  for (const ImportanceBy by : every<ImportanceBy>()) all.push_back(measured(translator, pairs, by, global));
  const double whole = bleu_ ? quality_of(translator, pairs).bleu : 0;
  Json heads = Json::array(), agreement = Json::object();
  std::string table = fmt::format("{:<18} {:>4}  {:>9} {:>9} {:>10} {:>8}{}\n", tr("attention").in(global.language),
                                  tr("head").in(global.language), "gate", "ablation", "confidence", "entropy",
                                  bleu_ ? "     BLEU" : "");
  for (size_t a = 0; a < places.size(); ++a)
    for (int64_t u = 0; u < places[a].units; ++u) {
      const auto unit = static_cast<size_t>(u);
      table += fmt::format("{:<18} {:>4}  {:>9.5f} {:>9.5f} {:>10.3f} {:>8.3f}", places[a].path, u + 1, all[0][a][unit],
                           all[1][a][unit], all[2][a][unit], all[3][a][unit]);
      Json head = {{"path", places[a].path}, {"head", u + 1}};
      for (const ImportanceBy by : every<ImportanceBy>())
        head[std::string(name_of(by))] = all[static_cast<size_t>(by)][a][unit];
      if (bleu_) {
        const double without = quality_of(translator, pairs, unit_off(config, places[a], u)).bleu;
        table += fmt::format(" {:>+8.2f}", without - whole);
        head["bleu_change"] = without - whole;
      }
      table += "\n";
      heads.push_back(std::move(head));
    }
  std::string ranks = fmt::format("{:<12}", "");
  for (const ImportanceBy by : every<ImportanceBy>()) ranks += fmt::format(" {:>10}", name_of(by));
  ranks += "\n";
  for (const ImportanceBy x : every<ImportanceBy>()) {
    ranks += fmt::format("{:<12}", name_of(x));
    for (const ImportanceBy y : every<ImportanceBy>()) {
      const double r =
          rank_correlation(in_one_list(all[static_cast<size_t>(x)]), in_one_list(all[static_cast<size_t>(y)]));
      ranks += fmt::format(" {:>10.2f}", r);
      agreement[std::string(name_of(x))][std::string(name_of(y))] = r;
    }
    ranks += "\n";
  }
  if (json_) {
    fmt::print("{}\n", Json{{"sentences", pairs.size()}, {"heads", heads}, {"rank_correlation", agreement}}.dump());
    return;
  }
  fmt::print("{}\n{}\n{}", table, tr("Rank correlation of the four measures over all heads:").in(global.language),
             ranks);
}

void Prune::curve(const Translator& translator, const SentencePairs& pairs, const Global& global) const {
  const Importance importance = measured(translator, pairs, by_, global);
  const int64_t all = std::ssize(in_one_list(importance)), least = std::ssize(importance);
  std::vector<double> shares, bleu, low, high;
  Json points = Json::array();
  if (!json_)
    fmt::print("{:>6} {:>6} {:>9} {:>8} {:>16}\n", tr("kept").in(global.language), tr("share").in(global.language),
               tr("loss").in(global.language), "BLEU", tr("95 % interval").in(global.language));
  std::vector<int64_t> counts;
  for (int tenths = 10; tenths >= 1; --tenths) {
    const int64_t count = std::max(least, (all * tenths + 5) / 10);
    if (counts.empty() || counts.back() != count) counts.push_back(count);
  }
  for (const int64_t count : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(all);
    const PrunedModel smaller = pruned_model(translator, most_important(importance, share));
    const TranslationQuality q = quality_of({*smaller.model, translator.tokenizers(), smaller.config}, pairs);
    shares.push_back(share);
    bleu.push_back(q.bleu);
    low.push_back(q.interval.mean - q.interval.half_width);
    high.push_back(q.interval.mean + q.interval.half_width);
    if (!json_)
      fmt::print("{:>6} {:>6.2f} {:>9.4f} {:>8.2f} {:>7.2f} .. {:>5.2f}\n", count, share, q.loss, q.bleu, low.back(),
                 high.back());
    points.push_back({{"heads", count},
                      {"share", share},
                      {"loss", q.loss},
                      {"bleu", q.bleu},
                      {"low", low.back()},
                      {"high", high.back()}});
  }
  if (json_) fmt::print("{}\n", Json{{"by", name_of(by_)}, {"sentences", pairs.size()}, {"curve", points}}.dump());
  if (!plot_) return;
  Figure figure =
      curves({{verbatim("BLEU"), shares, bleu, line_style("bo-")}},
             {.label = tr("share of heads kept"), .low = 0, .high = 1}, {.label = verbatim("BLEU"), .low = 0});
  std::get<Curves>(figure.panels[0].content).bands.push_back({tr("95 % interval"), shares, low, high});
  save(figure, *plot_, global.language);
}

void Prune::prune(const Translator& translator, const SentencePairs& pairs, const Global& global) const {
  const TransformerConfig& config = translator.model().transformer()->config;
  const std::vector<PrunableAttention> places = prunable_attentions(config);
  const KeptUnits kept =
      remove_.empty() ? most_important(measured(translator, pairs, by_, global), *keep_) : named_units(places, config);
  int64_t all = 0, left = 0;
  for (size_t a = 0; a < places.size(); ++a) {
    all += places[a].units;
    left += std::ssize(kept[a]);
  }
  require(left < all, "keeping {keep} of {heads} heads removes none", "keep"_a = keep_.value_or(1), "heads"_a = all);
  const PrunedModel smaller = pruned_model(translator, kept);
  save_pruned(smaller, translator.tokenizers(), output_);
  const TranslationQuality before = quality_of(translator, pairs),
                           after = quality_of({*smaller.model, translator.tokenizers(), smaller.config}, pairs);
  const auto bytes = [](const std::string& folder) {
    return static_cast<int64_t>(std::filesystem::file_size(folder + "/model.safetensors"));
  };
  Json removed = Json::array();
  std::string table;
  for (size_t a = 0; a < places.size(); ++a) {
    std::vector<std::string> gone;
    for (int64_t u = 0; u < places[a].units; ++u)
      if (!std::ranges::binary_search(kept[a], u)) {
        for (int64_t h = u * config.shared_heads(); h < (u + 1) * config.shared_heads(); ++h) {
          gone.push_back(std::to_string(h + 1));
          removed.push_back({{"path", places[a].path}, {"head", h + 1}});
        }
      }
    table += fmt::format("  {:<18} {} / {}  {}\n", places[a].path, kept[a].size(), places[a].units,
                         gone.empty() ? "" : tr("without {heads}", "heads"_a = listed(gone)).in(global.language));
  }
  const int64_t was = translator.model().parameters().count(), is = smaller.model->parameters().count();
  const int64_t products = products_per_token(translator.model().parameters()),
                fewer = products_per_token(smaller.model->parameters());
  if (json_) {
    const auto quality = [](const TranslationQuality& q) {
      return Json{{"loss", q.loss},
                  {"bleu", q.bleu},
                  {"low", q.interval.mean - q.interval.half_width},
                  {"high", q.interval.mean + q.interval.half_width}};
    };
    fmt::print("{}\n", Json{{"folder", output_},
                            {"heads", {all, left}},
                            {"removed", removed},
                            {"parameters", {was, is}},
                            {"products_per_token", {products, fewer}},
                            {"sentences", pairs.size()},
                            {"before", quality(before)},
                            {"after", quality(after)}}
                           .dump());
    return;
  }
  global.say(tr("{output}: {left} of {all} heads, {is} of {was} parameters, {share:.1f} % fewer products per token",
                "output"_a = output_, "left"_a = left, "all"_a = all, "is"_a = grouped(is), "was"_a = grouped(was),
                "share"_a = 100 * (1 - static_cast<double>(fewer) / static_cast<double>(products))));
  if (!global.quiet) fmt::print("{}", table);
  if (std::filesystem::exists(model_ + "/model.safetensors"))
    global.say(tr("file: {before} -> {after} bytes", "before"_a = grouped(bytes(model_)),
                  "after"_a = grouped(bytes(output_))));
  global.say(
      tr("on {count} pairs: loss {loss:.4f} -> {after_loss:.4f}, BLEU {bleu:.2f} ± {half:.2f} -> {after:.2f} ± "
         "{after_half:.2f}",
         "count"_a = pairs.size(), "loss"_a = before.loss, "after_loss"_a = after.loss, "bleu"_a = before.bleu,
         "half"_a = before.interval.half_width, "after"_a = after.bleu, "after_half"_a = after.interval.half_width));
  global.say(tr("next: qkv train --init {folder} --epochs 2 -o {folder}-tuned", "folder"_a = output_));
}

int Prune::run(const Global& global) {
  check_options();
  const Translator translator(model_);
  require(translator.model().transformer() != nullptr,
          "{model}: is a seq2seq model with one attention: only a Transformer has heads to remove", "model"_a = model_);
  const SentencePairs pairs =
      data_ ? read_pairs(*data_, -1).part(0, sentences_) : measuring_pairs(translator, model_, sentences_);
  require(pairs.size() > 0, "there are no sentence pairs to measure with");
  if (compare_) compare(translator, pairs, global);
  if (curve_) curve(translator, pairs, global);
  if (keep_ || !remove_.empty()) prune(translator, pairs, global);
  return 0;
}

}  // namespace

std::unique_ptr<Command> prune_command() { return std::make_unique<Prune>(); }

}  // namespace qkv::cli
