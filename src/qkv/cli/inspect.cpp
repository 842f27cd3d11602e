// qkv inspect: where a trained model looks while it writes a sentence.
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

const Text kNoWords{
    "so many heads have no room for so many words: the axes show positions; --layer and --head draw fewer, with words",
    "头与词太多，坐标轴放不下词，只标位置；用 --layer 和 --head 少画一些即可显示词"};

// What was looked at, and how it came about.
struct Looked : report::SeenSentence {
  std::vector<int32_t> source_ids, target_ids;
  bool cut_off = false;  // the model's translation, before its end
  size_t lines = 0;      // of the file that the pair is from
};

class Inspect : public Command {
 public:
  std::string name() const override { return "inspect"; }
  Text summary() const override {
    return {"draws the attention of a trained model on a sentence", "画出训练好的模型在一个句子上的注意力"};
  }
  std::string example() const override {
    return "qkv inspect --model runs/bahdanau 'the red cat is not sleeping .' -o heat.svg\n"
           "  qkv inspect --model runs/transformer --values --rollout 'the red cat is not sleeping .' -o heads.html\n"
           "  qkv inspect --model runs/transformer --kind cross --layer 2 --head 3 'the red cat is not sleeping .'";
  }

  void bind(Options& options) override {
    options.option("--model DIR", {"the folder that qkv train wrote", "qkv train 输出的文件夹"}, model_);
    options.option("--target TEXT", {"this translation instead of the model's own", "使用给定译文而不是模型自己的译文"},
                   target_);
    options.option(
        "--pairs FILE",
        {"take sentence and translation from a file of tab-separated pairs", "从制表符分隔的句对文件中取句子与译文"},
        pairs_);
    options.option("--line N", {"of that file, from 1", "该文件的行号，从 1 起"}, line_, 1);
    options.option("--gold FILE",
                   {"gold alignments (Pharaoh) of the file's lines: their cells get a frame",
                    "该文件各行的标准对齐（Pharaoh）：对应格子加框"},
                   gold_);
    options.option(
        "--base N",
        {"the gold file counts words from 0 or 1; found out when absent", "标准对齐从 0 还是 1 计数；默认自动判断"},
        base_, 0, 1);
    options.option("--beam N", {"hypotheses kept while translating", "翻译时的束宽"}, beam_, 1, 1000);
    options.option("--kind KIND", {"Transformer: only these attentions", "Transformer：只看这一种注意力"}, choice_.kind,
                   {"all", "encoder", "decoder", "cross"});
    options.option("--layer L", {"Transformer: only this layer, from 1", "Transformer：只看这一层，从 1 起"},
                   choice_.layer, 1);
    options.option("--head H",
                   {"Transformer: only this head, from 1; with --layer it is drawn large",
                    "Transformer：只看这个头，从 1 起；与 --layer 合用时放大"},
                   choice_.head, 1);
    options.flag(
        "--values",
        {"Transformer: beside the weights, the weights times the length of what each key's value adds (Kobayashi et al., 2020)",
         "Transformer：在权重旁再画权重乘以各值向量贡献的长度（Kobayashi 等，2020）"},
        choice_.values);
    options.flag(
        "--rollout",
        {"Transformer: and how much of every word is in a state after the layers up to it (Abnar and Zuidema, 2020)",
         "Transformer：再画经过各层之后每个词所占的份额（Abnar 与 Zuidema，2020）"},
        choice_.rollout);
    options.option("--steps N",
                   {"Transformer: pad the sentence to N tokens, as the book's figures do",
                    "Transformer：把句子填充到 N 个词元，与书中插图一致"},
                   steps_, 1, 4096);
    colours_.bind(options);
    options.option("-o,--output FILE",
                   {"draw to .svg, .png, .html or .txt, or write the weights to .npz; without it on the terminal",
                    "画到 .svg、.png、.html 或 .txt，或把权重写入 .npz；默认显示在终端"},
                   output_);
    options.flag("--json", {"print tokens and weights as JSON", "以 JSON 打印词元与权重"}, json_);
    options.positionals("SENTENCE", {"the sentence; several words need no quotes", "句子；多个词无需引号"}, words_);
  }

  int run(const Global& global) override {
    check_command_line();
    choice_.colours = colours_.over(choice_.colours);
    const Translator translator(model_);
    note_unfinished(model_, global.quiet);
    const Looked seen = look(translator);
    if (seen.cut_off)
      global.note({text("the translation was cut off after ", seen.target_ids.size(), " tokens"),
                   text("译文在 ", seen.target_ids.size(), " 个词元后被截断")});
    note_unknown_words(translator, seen, global);
    check(seen.attention.defined(), model_, ": this model has no attention (model.attention is none)");
    if (const Transformer* model = translator.model().transformer())
      return show(global, seen, pair_of(translator, *model, seen), gold_boxes(translator, seen));
    const bool asked =
        choice_.kind != "all" || choice_.layer || choice_.head || choice_.values || choice_.rollout || steps_;
    check(
        !asked, model_,
        ": this model has one attention, and --kind, --layer, --head, --values, --rollout and --steps are for Transformers");
    if (json_) return print(report::to_json(seen));
    if (output_ && output_->ends_with(".npz")) return write_arrays(global, seen, report::to_arrays(seen));
    return draw(global, seen, {attention_figure(seen, choice_.colours, gold_boxes(translator, seen), global.language)});
  }

 private:
  void check_command_line() const {
    if (model_.empty())
      throw UsageError("the option --model DIR is missing",
                       "qkv train --preset transformer makes one, runs/transformer");
    if (pairs_.empty() == words_.empty()) throw UsageError("give a sentence, or --pairs FILE and --line N");
    if (!pairs_.empty() && !line_) throw UsageError("--pairs needs --line N");
    if (line_ && pairs_.empty()) throw UsageError("--line goes with --pairs FILE");
    if (gold_ && pairs_.empty()) throw UsageError("--gold goes with --pairs and --line");
    if (base_ && !gold_) throw UsageError("--base goes with --gold FILE");
    if (colours_.given() && (json_ || (output_ && output_->ends_with(".npz"))))
      throw UsageError("--cmap and --range are for pictures; --json and .npz have the numbers");
    if (target_ && !pairs_.empty()) throw UsageError("--target and --pairs exclude each other");
    if (output_ && !output_->ends_with(".npz") && !output_->ends_with(".html")) {
      for (const char* ending : {".svg", ".png", ".txt"})
        if (output_->ends_with(ending)) return;
      throw UsageError(
          text("--output: expected a path that ends in .svg, .png, .html, .txt or .npz, got \"", *output_, "\""));
    }
  }

  Looked look(const Translator& translator) const {
    Looked out;
    std::string source, target = target_.value_or("");
    for (const std::string& word : words_) source += (source.empty() ? "" : " ") + word;
    if (!pairs_.empty()) {
      const SentencePairs all = read_pairs(pairs_);
      check(*line_ <= all.size(), pairs_, ": has ", all.size(), " lines, line ", *line_, " was asked for");
      out.lines = static_cast<size_t>(all.size());
      source = all.source[static_cast<size_t>(*line_ - 1)], target = all.target[static_cast<size_t>(*line_ - 1)];
    }
    check_utf8(source, "the sentence");
    check_utf8(target, "the translation");
    const Tokenizers& tokenizers = translator.tokenizers();
    check(!tokenizers.source.encode(source).empty(), "the sentence is empty");
    const bool given = target_ || !pairs_.empty();
    check(!given || !tokenizers.target.encode(target).empty(), "the translation is empty");
    out.source = source;
    std::vector<int32_t>&source_ids = out.source_ids, &target_ids = out.target_ids;
    if (given) {
      ForceOptions options{.source_name = "the sentence", .target_name = "the translation", .first_line = 0};
      if (!pairs_.empty())
        options.source_name = options.target_name = pairs_, options.first_line = static_cast<size_t>(*line_);
      const auto forced = translator.force({{source}, {target}}, options);
      source_ids = forced[0].source, target_ids = forced[0].target;
      out.target = target, out.attention = forced[0].forced.attention,
      out.log_probability = forced[0].forced.log_probability();
    } else {
      TranslateOptions options = translator.defaults();
      options.keep_attention = true, options.name = "the sentence", options.first_line = 0;
      if (beam_) options.beam = *beam_;
      const std::vector<std::string> one = {source};
      const auto translation = translator.translate(one, options)[0];
      const Hypothesis& best = translation.hypotheses[0];
      source_ids = translation.source, target_ids = best.tokens;
      if (best.ended) target_ids.push_back(tokenizers.target.eos());
      out.cut_off = !best.ended;
      out.target = translator.text(best, translation.writing), out.attention = best.attention,
      out.log_probability = best.log_probability;
    }
    out.source_tokens = tokenizers.source.tokens(source_ids);
    out.target_tokens = tokenizers.target.tokens(target_ids);
    return out;
  }

  // Of the sentence, and of a translation that was given: the model's own has none.
  void note_unknown_words(const Translator& translator, const Looked& seen, const Global& global) const {
    UnknownWords unknown(global.quiet);
    unknown.note(translator.tokenizers().source, seen.source, seen.source_ids, "the sentence");
    if (target_ || !pairs_.empty())
      unknown.note(translator.tokenizers().target, seen.target, seen.target_ids, "the translation");
  }

  // What was asked of a Transformer, in the form that was asked for.
  int show(const Global& global, const Looked& seen, const report::SeenPair& pair,
           const std::vector<CellIndex>& boxes) const {
    if (json_) return print(report::to_json(seen, pair, choice_));
    if (output_ && output_->ends_with(".npz")) return write_arrays(global, seen, report::to_arrays(pair, choice_));
    const bool text = !output_ || output_->ends_with(".txt");
    const auto figures = attention_figures(pair, choice_, boxes, global.language,
                                           text ? report::FigureUse::terminal : report::FigureUse::paper);
    if (report::lacks_words(figures)) global.note(kNoWords);
    return draw(global, seen, figures);
  }

  int draw(const Global& global, const Looked& seen, const std::vector<Figure>& figures) const {
    if (!output_) {
      fmt::print("{}\n", seen.target);
      const TerminalOptions options{terminal_columns(STDOUT_FILENO),
                                    global.color ? TerminalColour::truecolor : TerminalColour::ascii};
      for (size_t i = 0; i < figures.size(); ++i) fmt::print("{}{}", i > 0 ? "\n" : "", terminal(figures[i], options));
      return 0;
    }
    if (output_->ends_with(".html"))
      write_file(*output_, to_html(seen, figures));
    else
      save(figures, *output_);
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

  // The whole pair in the Transformer at once: it reads <bos> and all but the last of the tokens that it writes.
  report::SeenPair pair_of(const Translator& translator, const Transformer& model, const Looked& seen) const {
    const Tokenizer& source = translator.tokenizers().source;
    const Tokenizer& target = translator.tokenizers().target;
    std::vector<int32_t> read = seen.source_ids, written = seen.target_ids;
    check(!steps_ || *steps_ >= std::ssize(read), "--steps ", steps_.value_or(0), ": the sentence has ", read.size(),
          " tokens with its <eos>");
    const int64_t most = model.config.facts().longest_input.value_or(INT64_MAX);
    check(!steps_ || *steps_ <= most, "--steps ", steps_.value_or(0), ": the model has learned ", most, " positions");
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
      check(link.source < words(columns) && link.target < words(rows), *gold_, ": line ", n, ": the link ", link.source,
            "-", link.target, " is outside of ", words(columns), " source and ", words(rows), " target words");
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
