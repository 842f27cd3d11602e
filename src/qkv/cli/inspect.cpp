// qkv inspect: what a trained model attends to while it writes a sentence.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "qkv/cli/colour_options.h"
#include "qkv/cli/command.h"
#include "qkv/cli/terminal.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/corpus.h"
#include "qkv/data/text.h"
#include "qkv/eval/alignment.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/npz.h"
#include "qkv/plot/save.h"
#include "qkv/plot/terminal.h"
#include "qkv/report/attention_maps.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {
namespace {

const Text kNoWords =
    tr("too many heads and words to label: the axes show positions; --layer and --head draw fewer maps, with words");

// The sentence and translation that are shown, and their origin.
struct Looked : report::SeenSentence {
  std::vector<int32_t> source_ids, target_ids;
  bool cut_off = false;  // the model's translation stops before its end
  size_t lines = 0;      // of the file of pairs
};

class Inspect : public Command {
 public:
  std::string name() const override { return "inspect"; }
  Text summary() const override { return tr("draws the attention of a trained model on a sentence"); }
  std::string example() const override {
    return "qkv inspect --model runs/bahdanau 'the red cat is not sleeping .' -o heat.svg\n"
           "  qkv inspect --model runs/transformer --values --rollout 'the red cat is not sleeping .' -o heads.html\n"
           "  qkv inspect --model runs/transformer --kind cross --layer 2 --head 3 'the red cat is not sleeping .'";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("the folder that qkv train wrote"), model_);
    options.option("--target TEXT", tr("use this translation instead of the model's own"), target_);
    options.option("--pairs FILE", tr("take sentence and translation from a file of tab-separated pairs"), pairs_);
    options.option("--line N", tr("line of that file, from 1"), line_, 1);
    options.option("--gold FILE", tr("gold alignments (Pharaoh) of the file's lines: their cells get a frame"), gold_);
    options.option("--base N", tr("the gold file counts words from 0 or 1; detected when absent"), base_, 0, 1);
    options.option("--beam N", tr("hypotheses kept while translating"), beam_, 1, 1000);
    options.option("--kind KIND", tr("Transformer: only this kind of attention"), choice_.kind,
                   {"all", "encoder", "decoder", "cross"});
    options.option("--layer L", tr("Transformer: only this layer, from 1"), choice_.layer, 1);
    options.option("--head H", tr("Transformer: only this head, from 1; with --layer it is drawn large"), choice_.head,
                   1);
    options.flag(
        "--values",
        tr("Transformer: also the weights times the length of what each key's value adds (Kobayashi et al., 2020)"),
        choice_.values);
    options.flag(
        "--rollout",
        tr("Transformer: also how much of each word is in a state after the layers so far (Abnar and Zuidema, 2020)"),
        choice_.rollout);
    options.option("--steps N", tr("Transformer: pad the sentence to N tokens, as the book's figures do"), steps_, 1,
                   4096);
    colours_.bind(options);
    options.option(
        "-o,--output FILE",
        tr("draw to .svg, .png, .html or .txt, or write the weights to .npz (default: draw on the terminal)"), output_);
    options.flag("--json", tr("print tokens and weights as JSON"), json_);
    options.positionals("SENTENCE", tr("the sentence; several words need no quotes"), words_);
  }

  int run(const Global& global) override {
    check_command_line();
    choice_.colours = colours_.over(choice_.colours);
    const Translator translator(model_);
    note_unfinished(model_, global);
    const Looked seen = look(translator);
    if (seen.cut_off)
      global.note(tr("the translation was cut off after {target_ids} tokens", "target_ids"_a = seen.target_ids.size()));
    note_unknown_words(translator, seen, global);
    require(seen.attention.defined(), "{model}: this model has no attention (model.attention is none)",
            "model"_a = model_);
    if (const Transformer* model = translator.model().transformer())
      return show(global, seen, pair_of(translator, *model, seen), gold_boxes(translator, seen));
    const bool asked =
        choice_.kind != "all" || choice_.layer || choice_.head || choice_.values || choice_.rollout || steps_;
    require(
        !asked,
        "{model}: this model has a single attention map; --kind, --layer, --head, --values, --rollout and --steps are "
        "for Transformers",
        "model"_a = model_);
    if (json_) return print(report::to_json(seen));
    if (output_ && output_->ends_with(".npz")) return write_arrays(global, seen, report::to_arrays(seen));
    return draw(global, seen, {attention_figure(seen, choice_.colours, gold_boxes(translator, seen))});
  }

 private:
  void check_command_line() const {
    if (model_.empty())
      throw UsageError(tr("the option --model DIR is missing"),
                       tr("qkv train --preset transformer makes one in runs/transformer"));
    if (pairs_.empty() == words_.empty()) throw UsageError(tr("give a sentence, or --pairs FILE and --line N"));
    if (!pairs_.empty() && !line_) throw UsageError(tr("--pairs needs --line N"));
    if (line_ && pairs_.empty()) throw UsageError(tr("--line goes with --pairs FILE"));
    if (gold_ && pairs_.empty()) throw UsageError(tr("--gold goes with --pairs and --line"));
    if (base_ && !gold_) throw UsageError(tr("--base goes with --gold FILE"));
    if (colours_.given() && (json_ || (output_ && output_->ends_with(".npz"))))
      throw UsageError(tr("--cmap and --range are for pictures; --json and .npz contain numbers"));
    if (target_ && !pairs_.empty()) throw UsageError(tr("--target and --pairs exclude each other"));
    if (output_ && !output_->ends_with(".npz") && !output_->ends_with(".html")) {
      for (const char* ending : {".svg", ".png", ".txt"})
        if (output_->ends_with(ending)) return;
      throw UsageError(tr("--output: expected a path that ends in .svg, .png, .html, .txt or .npz, got \"{output}\"",
                          "output"_a = *output_));
    }
  }

  Looked look(const Translator& translator) const {
    Looked out;
    std::string source, target = target_.value_or("");
    for (const std::string& word : words_) source += (source.empty() ? "" : " ") + word;
    if (!pairs_.empty()) {
      const SentencePairs all = read_pairs(pairs_);
      require(*line_ <= all.size(), "{pairs}: has {all} lines, but --line is {line}", "pairs"_a = pairs_,
              "all"_a = all.size(), "line"_a = *line_);
      out.lines = static_cast<size_t>(all.size());
      source = all.source[static_cast<size_t>(*line_ - 1)];
      target = all.target[static_cast<size_t>(*line_ - 1)];
    }
    check_utf8(source, "the sentence");
    check_utf8(target, "the translation");
    const Tokenizers& tokenizers = translator.tokenizers();
    require(!tokenizers.source.encode(source).empty(), "the sentence is empty");
    const bool given = target_ || !pairs_.empty();
    require(!given || !tokenizers.target.encode(target).empty(), "the translation is empty");
    out.source = source;
    std::vector<int32_t>&source_ids = out.source_ids, &target_ids = out.target_ids;
    if (given) {
      ForceOptions options{.source_name = "the sentence", .target_name = "the translation", .first_line = 0};
      if (!pairs_.empty()) {
        options.source_name = options.target_name = pairs_;
        options.first_line = static_cast<size_t>(*line_);
      }
      const auto forced = translator.force({{source}, {target}}, options);
      source_ids = forced[0].source;
      target_ids = forced[0].target;
      out.target = target;
      out.attention = forced[0].forced.attention;
      out.log_probability = forced[0].forced.log_probability();
    } else {
      TranslateOptions options = translator.defaults();
      options.keep_attention = true;
      options.name = "the sentence";
      options.first_line = 0;
      if (beam_) options.beam = *beam_;
      const std::vector<std::string> one = {source};
      const auto translation = translator.translate(one, options)[0];
      const Hypothesis& best = translation.hypotheses[0];
      source_ids = translation.source;
      target_ids = best.tokens;
      if (best.ended) target_ids.push_back(tokenizers.target.eos());
      out.cut_off = !best.ended;
      out.target = translator.text(best, translation.writing);
      out.attention = best.attention;
      out.log_probability = best.log_probability;
    }
    out.source_tokens = tokenizers.source.tokens(source_ids);
    out.target_tokens = tokenizers.target.tokens(target_ids);
    return out;
  }

  // In the sentence, and in a translation that was given: the model's own has none.
  void note_unknown_words(const Translator& translator, const Looked& seen, const Global& global) const {
    UnknownWords unknown(global);
    unknown.note(translator.tokenizers().source, seen.source, seen.source_ids, tr("the sentence"));
    if (target_ || !pairs_.empty())
      unknown.note(translator.tokenizers().target, seen.target, seen.target_ids, tr("the translation"));
  }

  // The requested maps of a Transformer, in the requested form.
  int show(const Global& global, const Looked& seen, const report::SeenPair& pair,
           const std::vector<CellIndex>& boxes) const {
    if (json_) return print(report::to_json(seen, pair, choice_));
    if (output_ && output_->ends_with(".npz")) return write_arrays(global, seen, report::to_arrays(pair, choice_));
    const bool text = !output_ || output_->ends_with(".txt");
    const auto figures =
        attention_figures(pair, choice_, boxes, text ? report::FigureUse::terminal : report::FigureUse::paper);
    if (report::lacks_words(figures)) global.note(kNoWords);
    return draw(global, seen, figures);
  }

  int draw(const Global& global, const Looked& seen, const std::vector<Figure>& figures) const {
    if (!output_) {
      fmt::print("{}\n", seen.target);
      const TerminalOptions options{terminal_columns(STDOUT_FILENO),
                                    global.color ? TerminalColour::truecolor : TerminalColour::ascii, global.language};
      for (size_t i = 0; i < figures.size(); ++i) fmt::print("{}{}", i > 0 ? "\n" : "", terminal(figures[i], options));
      return 0;
    }
    if (output_->ends_with(".html"))
      write_file(*output_, to_html(seen, figures, global.language));
    else
      save(figures, *output_, global.language);
    return done(global, seen);
  }

  static int print(const std::string& json) {
    fmt::print("{}\n", json);
    return 0;
  }

  int write_arrays(const Global& global, const Looked& seen, const std::map<std::string, Array>& arrays) const {
    write_npz(*output_, arrays);
    return done(global, seen);
  }

  int done(const Global& global, const Looked& seen) const {
    if (!global.quiet) fmt::print("{}\n{}\n", seen.target, *output_);
    return 0;
  }

  // Runs the Transformer on the whole pair at once: it reads <bos> and all but the last of the tokens it writes.
  report::SeenPair pair_of(const Translator& translator, const Transformer& model, const Looked& seen) const {
    const Tokenizer& source = translator.tokenizers().source;
    const Tokenizer& target = translator.tokenizers().target;
    std::vector<int32_t> read = seen.source_ids, written = seen.target_ids;
    require(!steps_ || *steps_ >= std::ssize(read), "--steps {value_or}: the sentence has {read} tokens with its <eos>",
            "value_or"_a = steps_.value_or(0), "read"_a = read.size());
    const int64_t most = model.config.facts().longest_input.value_or(INT64_MAX);
    require(!steps_ || *steps_ <= most, "--steps {value_or}: the model has learned {most} positions",
            "value_or"_a = steps_.value_or(0), "most"_a = most);
    if (steps_) read.resize(static_cast<size_t>(*steps_), source.pad());
    std::vector<int32_t> inputs{target.bos()};
    inputs.insert(inputs.end(), written.begin(), written.end() - 1);
    const auto row = [](const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); };
    const Ids length({1}, {static_cast<int32_t>(seen.source_ids.size())});
    return {transformer_attention(model, row(read), length, row(inputs)), source.tokens(read), target.tokens(inputs),
            target.tokens(written)};
  }

  // Gold links as cells of tokens.
  std::vector<CellIndex> gold_boxes(const Translator& translator, const Looked& seen) const {
    if (!gold_) return {};
    const std::vector<std::string> lines = read_lines(*gold_);
    const auto n = static_cast<size_t>(*line_);
    check_same_lines(pairs_, seen.lines, *gold_, lines.size());
    const AlignmentFile gold =
        parse_alignments(lines, *gold_, base_ ? std::optional<int>(static_cast<int>(*base_)) : std::nullopt);
    const auto columns = translator.tokenizers().source.word_of_token(seen.source),
               rows = translator.tokenizers().target.word_of_token(seen.target);
    const auto words = [](const std::vector<int32_t>& of) { return of.empty() ? 0 : of.back() + 1; };
    std::vector<CellIndex> out;
    for (const AlignmentLink& link : gold.lines[n - 1]) {
      require(link.source < words(columns) && link.target < words(rows),
              "{gold}: line {n}: the link {source}-{target} is outside the {columns} source and {rows} target words",
              "gold"_a = *gold_, "n"_a = n, "source"_a = link.source, "target"_a = link.target,
              "columns"_a = words(columns), "rows"_a = words(rows));
      for (size_t r = 0; r < rows.size(); ++r)
        for (size_t c = 0; c < columns.size(); ++c)
          if (rows[r] == link.target && columns[c] == link.source)
            out.push_back({static_cast<int64_t>(r), static_cast<int64_t>(c)});
    }
    return out;
  }

  std::string model_, pairs_;
  std::vector<std::string> words_;
  std::optional<std::string> target_, gold_, output_;
  std::optional<int64_t> line_, beam_, base_, steps_;
  report::MapChoice choice_;
  ColourOptions colours_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> inspect_command() { return std::make_unique<Inspect>(); }

}  // namespace qkv::cli
