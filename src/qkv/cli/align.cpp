// qkv align: word alignments from a model's attention, and the error rate of alignments against gold ones.
#include <fmt/format.h>

#include "qkv/cli/command.h"
#include "qkv/cli/status_line.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/core/counts.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/plot/save.h"
#include "qkv/report/alignments.h"

namespace qkv::cli {
namespace {

constexpr int64_t kPairsAtOnce = 64;
constexpr int64_t kDrawnPairs = 12;
constexpr int64_t kManyPairs = 20;  // with fewer pairs, words are too rare to tell which links make sense

std::vector<int64_t> word_counts(const std::string& path) {
  std::vector<int64_t> counts;
  for (const std::string& line : read_text_lines(path))
    counts.push_back(static_cast<int64_t>(split_blanks(line).size()));
  return counts;
}

class Align : public Command {
 public:
  std::string name() const override { return "align"; }
  Text summary() const override {
    return tr("word alignments from a model's attention, and their error rate against gold ones");
  }
  std::string example() const override {
    return "qkv align --model runs/bahdanau --pairs pairs.tsv --gold pairs.align\n"
           "  qkv align --model runs/transformer --pairs pairs.tsv --layer 2 --head 1 --shift 0 -o links.align";
  }

  void bind(Options& o) override {
    o.option("--model DIR",
             tr("align with the attention of this model (a folder that qkv train wrote, or a pretrained "
                "one)"),
             model_);
    o.option("--pairs FILE", tr("with --model: tab-separated sentence pairs; or --source and --target"), pairs_);
    o.option("--rule R",
             tr("with --model: link each target word to the source word with the largest weight; or let source words "
                "compete, so that a word already linked is used again only if no other has a tenth of its weight"),
             rule_, {LinkRule::competing, LinkRule::largest});
    o.option("--layer L", tr("with --model, for a Transformer: use this layer, from 1 (default: the best one)"), layer_,
             1);
    o.option("--head H", tr("and this head, from 1"), head_, 1);
    o.option("--shift N",
             tr("and the weights of the step that writes a word (0) or of the next step, which reads it (1)"), shift_,
             0, 1);
    o.option("--unit U",
             tr("with --model: align blank-separated words, or the tokens of the model, for languages that are written "
                "without blanks"),
             unit_, {AlignmentUnit::words, AlignmentUnit::pieces});
    o.option("-o,--output FILE", tr("with --model: write the alignments there"), output_);
    o.option("--plot FILE",
             tr("with --model: draw the weights and links of the first {count} pairs to .svg, .png or .txt",
                "count"_a = kDrawnPairs),
             plot_);
    o.option("--alignment FILE",
             tr("word alignments to score, one sentence per line, links as 1-2; - is standard input"), alignment_);
    o.option("--gold FILE", tr("gold alignments: 1-2 sure, 1p2 or 1?2 possible"), gold_);
    o.option(
        "--base N",
        tr("the number of the first word in both files, 0 or 1; detected when absent, with a note (--model writes 0)"),
        base_, 0, 1);
    o.option("--gold-base N", tr("the same, for the gold file alone"), gold_base_, 0, 1);
    o.option("--source FILE", tr("source sentences: links outside them are refused"), source_);
    o.option("--target FILE", tr("target sentences"), target_);
    o.flag("--json", tr("print the result as JSON"), json_);
  }

  int run(const Global& global) override {
    if (model_) return align_by_model(global);
    if (!alignment_)
      throw UsageError(tr("give --alignment FILE to score an alignment, or --model DIR to make one"),
                       tr("qkv align --help shows an example"));
    if (pairs_ || output_ || layer_ || head_ || shift_ || plot_ || unit_ != AlignmentUnit::words)
      throw UsageError(tr("--pairs, --layer, --head, --shift, --unit, --output and --plot go with --model"));
    if (!gold_) throw UsageError(tr("--gold FILE is missing"), tr("qkv align --help shows an example"));
    if (*alignment_ == "-" && *gold_ == "-")
      throw UsageError(tr("--alignment and --gold cannot both be standard input"));
    if (source_.has_value() != target_.has_value()) throw UsageError(tr("--source and --target go together"));
    const AlignmentFile alignments = read(*alignment_, base_, "--base", global);
    const AlignmentFile gold = read(*gold_, gold_base_ ? gold_base_ : base_, "--gold-base", global);
    check_same_lines(*alignment_, alignments.lines.size(), *gold_, gold.lines.size());
    if (source_) {
      const auto source = word_counts(*source_), target = word_counts(*target_);
      check_alignment_lengths(alignments, input_name(*alignment_), source, target);
      check_alignment_lengths(gold, input_name(*gold_), source, target);
    }
    const AlignmentScore score = score_alignments(alignments.lines, gold.lines);
    const size_t lines = gold.lines.size();
    fmt::print("{}", json_ ? report::to_json(score, lines) + "\n" : report::score_text(score, lines, global.language));
    return 0;
  }

 private:
  SentencePairs sentences() const {
    if (pairs_ && (source_ || target_)) throw UsageError(tr("--pairs and --source with --target exclude each other"));
    if (pairs_) return read_pairs(*pairs_);
    if (source_ && target_) return read_aligned(*source_, *target_);
    throw UsageError(tr("--model needs sentences: --pairs FILE, or --source FILE and --target FILE"));
  }

  int align_by_model(const Global& global) const {
    if (alignment_) throw UsageError(tr("--model and --alignment exclude each other"));
    if (plot_) check_figure_path(*plot_);
    const SentencePairs pairs = sentences();
    std::optional<AlignmentFile> gold;
    if (gold_) {
      gold = read(*gold_, gold_base_ ? gold_base_ : base_, "--gold-base", global);
      check_same_lines(pairs_ ? *pairs_ : *source_, pairs.source.size(), *gold_, gold->lines.size());
    }
    const Translator translator(*model_);
    note_unfinished(*model_, global);
    note_unknown_words(translator, pairs, global);
    const MapGroup maps = maps_of(translator);
    const SentencePairs units = units_of(translator, pairs);
    report::AlignmentChoice choice{.readings = chosen_readings(maps), .scores = {}, .heads = maps.heads};
    const auto alignments = links_of(translator, pairs, choice.readings, global);
    if (gold) {
      check_gold(*gold, units);
      for (const auto& of_reading : alignments) choice.scores.push_back(score_alignments(of_reading, gold->lines));
    }
    choice.best = gold ? best_by_gold(choice.scores) : best_by_information(units, choice.readings, alignments);
    const std::string lines = pharaoh_lines(alignments[choice.best]);
    if (output_) write_file(*output_, lines);
    if (plot_) draw(translator, pairs, units, choice, alignments[choice.best], global);
    if (choice.readings.size() > 1) say_choice(choice, few(pairs), global);
    if (gold && json_)
      fmt::print("{}\n", report::to_json(choice.scores[choice.best], gold->lines.size(), &choice));
    else if (gold)
      fmt::print("{}", report::score_text(choice.scores[choice.best], gold->lines.size(), global.language));
    else if (json_)
      fmt::print("{}\n", report::links_json(choice, alignments[choice.best], base_.value_or(0)));
    else if (!output_ && !plot_)
      fmt::print("{}", lines);
    return 0;
  }

  SentencePairs units_of(const Translator& translator, const SentencePairs& pairs) const {
    SentencePairs out = pairs;
    for (std::string& line : out.source) line = in_units(unit_, translator.tokenizers().source, line);
    for (std::string& line : out.target) line = in_units(unit_, translator.tokenizers().target, line);
    return out;
  }

  void draw(const Translator& translator, const SentencePairs& pairs, const SentencePairs& units,
            const report::AlignmentChoice& choice, const std::vector<Alignment>& links, const Global& global) const {
    const SentencePairs part = pairs.part(0, kDrawnPairs);
    const auto forced = translator.force(
        part, {.source_name = pairs_ ? *pairs_ : *source_, .target_name = pairs_ ? *pairs_ : *target_});
    std::vector<report::DrawnAlignment> drawn;
    for (size_t i = 0; i < forced.size(); ++i) {
      const Tensor weights =
          alignment_weights(translator.tokenizers(), part, i, forced[i], choice.readings[choice.best], unit_);
      if (weights.defined() && weights.numel() > 0)
        drawn.push_back({words_of(units.source[i]), words_of(units.target[i]), weights, links[i]});
    }
    require(!drawn.empty(), "--plot {file}: none of the first {count} pairs has words on both sides", "file"_a = *plot_,
            "count"_a = kDrawnPairs);
    save(report::alignments_figure(std::move(drawn), best_name(choice)), *plot_, global.language);
    if (pairs.size() > kDrawnPairs)
      global.note(tr("{file} shows the first {count} of {pairs}", "file"_a = *plot_, "count"_a = kDrawnPairs,
                     "pairs"_a = pair_count(static_cast<uint64_t>(pairs.size()))));
  }

  static std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> out;
    for (const std::string_view word : split_blanks(line)) out.emplace_back(word);
    return out;
  }

  MapGroup maps_of(const Translator& translator) const {
    const auto maps = translator.model().facts().source_maps();
    require(maps.has_value(), "{model}: this model has no attention (model.attention is none)", "model"_a = *model_);
    return *maps;
  }

  // The links of every reading, block by block: the attention of a large file at once would fill the memory.
  std::vector<std::vector<Alignment>> links_of(const Translator& translator, const SentencePairs& pairs,
                                               const std::vector<AlignmentReading>& readings,
                                               const Global& global) const {
    const std::string source_name = pairs_ ? *pairs_ : *source_, target_name = pairs_ ? *pairs_ : *target_;
    std::vector<std::vector<Alignment>> out(readings.size());
    StatusLine status(global);
    for (int64_t begin = 0; begin < pairs.size(); begin += kPairsAtOnce) {
      status.share(
          tr("aligning {pairs}", "pairs"_a = pair_count(static_cast<uint64_t>(pairs.size()))).in(global.language),
          static_cast<double>(begin) / static_cast<double>(pairs.size()), global.language);
      const SentencePairs part = pairs.part(begin, kPairsAtOnce);
      const auto forced = translator.force(
          part, {.source_name = source_name, .target_name = target_name, .first_line = static_cast<size_t>(begin) + 1});
      const auto links = read_alignments(translator.tokenizers(), part, forced, readings, rule_, unit_);
      for (size_t r = 0; r < out.size(); ++r) out[r].insert(out[r].end(), links[r].begin(), links[r].end());
    }
    return out;
  }

  // The readings that the options leave to choose from. A recurrent model has one map, and attends before it writes.
  std::vector<AlignmentReading> chosen_readings(const MapGroup& maps) const {
    const int64_t heads = maps.heads, layers = maps.layers;
    require(maps.numbered || !(layer_ || head_ || shift_),
            "{model}: this model has a single attention map; --layer, --head and --shift are for Transformers",
            "model"_a = *model_);
    require(!layer_ || *layer_ <= layers, "--layer {layer}: the last layer of the decoder of {model} is {layers}",
            "layer"_a = layer_.value_or(0), "model"_a = *model_, "layers"_a = layers);
    require(!head_ || *head_ <= heads, "--head {head}: the last head of the attention of {model} is {heads}",
            "head"_a = head_.value_or(0), "model"_a = *model_, "heads"_a = heads);
    const std::optional<int64_t> shift = maps.numbered ? shift_ : std::optional<int64_t>(0);
    std::vector<AlignmentReading> out;
    for (const AlignmentReading& reading : all_readings(maps.count()))
      if ((!layer_ || reading.map / heads == *layer_ - 1) && (!head_ || reading.map % heads == *head_ - 1) &&
          (!shift || reading.shift == *shift))
        out.push_back(reading);
    return out;
  }

  // The reading with the lowest error rate; the first of equals.
  static size_t best_by_gold(const std::vector<AlignmentScore>& scores) {
    size_t best = 0;
    for (size_t r = 1; r < scores.size(); ++r)
      if (scores[r].error_rate().value_or(1) < scores[best].error_rate().value_or(1)) best = r;
    return best;
  }

  // The reading whose links carry the most information. A few pairs cannot tell the steps apart: the writing step is
  // used.
  size_t best_by_information(const SentencePairs& pairs, const std::vector<AlignmentReading>& readings,
                             const std::vector<std::vector<Alignment>>& alignments) const {
    if (alignments.size() == 1) return 0;
    std::optional<size_t> best;
    double most = 0;
    for (size_t r = 0; r < alignments.size(); ++r) {
      if (few(pairs) && !shift_ && readings[r].shift > 0) continue;
      const double information = link_information(pairs, alignments[r]);
      if (!best || information > most) {
        best = r;
        most = information;
      }
    }
    return *best;
  }
  void note_unknown_words(const Translator& translator, const SentencePairs& pairs, const Global& global) const {
    UnknownWords unknown(global);
    const Tokenizers& tokenizers = translator.tokenizers();
    for (size_t i = 0; i < pairs.source.size(); ++i) {
      const auto line = [&](const std::string& file) {
        return tr("{file}: line {line}", "file"_a = file, "line"_a = i + 1);
      };
      const Text source = line(pairs_ ? *pairs_ : *source_), target = pairs_ ? source : line(*target_);
      unknown.note(tokenizers.source, pairs.source[i], tokenizers.source.encode(pairs.source[i]), source);
      unknown.note(tokenizers.target, pairs.target[i], tokenizers.target.encode(pairs.target[i]), target);
    }
  }
  static bool few(const SentencePairs& pairs) { return pairs.size() < kManyPairs; }

  std::string pharaoh_lines(const std::vector<Alignment>& alignments) const {
    std::string lines;
    for (const Alignment& links : alignments) lines += pharaoh(links, base_.value_or(0)) + "\n";
    return lines;
  }

  void check_gold(const AlignmentFile& gold, const SentencePairs& pairs) const {
    std::vector<int64_t> source_words, target_words;
    for (const std::string& line : pairs.source)
      source_words.push_back(static_cast<int64_t>(split_blanks(line).size()));
    for (const std::string& line : pairs.target)
      target_words.push_back(static_cast<int64_t>(split_blanks(line).size()));
    check_alignment_lengths(gold, *gold_, source_words, target_words);
  }

  // With gold links: the error rates of all readings, and the best one. Without: a note saying which one was chosen.
  void say_choice(const report::AlignmentChoice& choice, bool few_pairs, const Global& global) const {
    const Text name = best_name(choice);
    if (choice.scores.empty())
      global.note(few_pairs ? tr("{reading}: its links tell the most about the words, as far as so few pairs can show; "
                                 "--layer, --head and --shift choose another",
                                 "reading"_a = name)
                            : tr("{reading}: its links tell the most about the words; --layer, --head and --shift "
                                 "choose another",
                                 "reading"_a = name));
    else if (!json_)
      fmt::print("{}", choice_table(choice, global.language));
  }

  static AlignmentFile read(const std::string& path, const std::optional<int64_t>& base, const char* option,
                            const Global& global) {
    const std::optional<int> known = base ? std::optional<int>(static_cast<int>(*base)) : std::nullopt;
    AlignmentFile file = parse_alignments(read_text_lines(path), input_name(path), known);
    if (file.base_detected && !global.quiet) {
      const Text note =
          file.base == 0
              ? tr("an index is 0, so words are counted from 0; {option} 0 says so explicitly", "option"_a = option)
              : tr("no index is 0, so words are assumed to be counted from 1; {option} sets it", "option"_a = option);
      global.note(tr("{file}: {problem}", "file"_a = input_name(path), "problem"_a = note));
    }
    return file;
  }

  std::optional<std::string> alignment_, gold_, source_, target_, model_, pairs_, output_, plot_;
  AlignmentUnit unit_ = AlignmentUnit::words;
  LinkRule rule_ = LinkRule::competing;
  std::optional<int64_t> base_, gold_base_, layer_, head_, shift_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> align_command() { return std::make_unique<Align>(); }

}  // namespace qkv::cli
