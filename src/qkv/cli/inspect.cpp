// qkv inspect: what a trained model attends to.
#include "qkv/cli/inspect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/npz.h"
#include "qkv/plot/save.h"
#include "qkv/plot/terminal.h"
#include "qkv/serve/recorded.h"
#include "qkv/tasks/kinds.h"

namespace qkv::cli {
namespace {

class Inspect : public Command {
 public:
  std::string name() const override { return "inspect"; }
  Text summary() const override {
    return tr("draws the attention of a trained model on a sentence, a text or an image");
  }
  std::string example() const override {
    return "qkv inspect --model runs/bahdanau 'the red cat is not sleeping .' -o heat.svg\n"
           "  qkv inspect --model runs/transformer --values --rollout 'the red cat is not sleeping .' -o heads.html\n"
           "  qkv inspect --model runs/transformer --kind cross --layer 2 --head 3 'the red cat is not sleeping .'\n"
           "  qkv inspect --model runs/lm 'the red cat' -o heads.png\n"
           "  qkv inspect --model runs/vit --rollout some/star/3.png -o attention.png";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("the folder that qkv train wrote, or a pretrained one"), o_.model);
    options.option("--target TEXT", tr("use this translation instead of the model's own"), o_.target);
    options.option("--pairs FILE", tr("take sentence and translation from a file of tab-separated pairs"), o_.pairs);
    options.option("--line N", tr("line of that file, from 1"), o_.line, 1);
    options.option("--gold FILE", tr("gold alignments (Pharaoh) of the file's lines: their cells get a frame"),
                   o_.gold);
    options.option("--base N", tr("the gold file counts words from 0 or 1; detected when absent"), o_.base, 0, 1);
    options.option("--beam N", tr("hypotheses kept while translating"), o_.beam, 1, 1000);
    options.option("--kind KIND", tr("Transformer: only this kind of attention"), o_.choice.kind,
                   {"all", "encoder", "decoder", "cross"});
    options.option("--layer L", tr("Transformer: only this layer, from 1"), o_.choice.layer, 1);
    options.option("--head H", tr("Transformer: only this head, from 1; with --layer it is drawn large"),
                   o_.choice.head, 1);
    options.flag(
        "--values",
        tr("Transformer: also the weights times the length of what each key's value adds (Kobayashi et al., 2020)"),
        o_.choice.values);
    options.flag(
        "--rollout",
        tr("Transformer: also how much of each word is in a state after the layers so far (Abnar and Zuidema, 2020)"),
        o_.choice.rollout);
    options.flag("--words",
                 tr("text: maps between words instead of tokens: what the tokens of a word see, on average, of all "
                    "tokens of another"),
                 o_.by_word);
    options.option("--steps N", tr("Transformer: pad the sentence to N tokens, as the book's figures do"), o_.steps, 1,
                   4096);
    options.option("--patch R,C", tr("image: what the patch in this row and column, from 1, attends to"), o_.patch);
    options.flag("--resize", tr("image: stretch it to the model's size"), o_.resize);
    o_.colours.bind(options);
    options.option(
        "-o,--output FILE",
        tr("draw to .svg, .png, .html or .txt, or write the weights to .npz (default: draw on the terminal)"),
        o_.output);
    options.flag("--json", tr("print tokens and weights as JSON"), o_.json);
    options.positionals("SENTENCE", tr("the sentence, whose words need no quotes; for an image, its PNG file"),
                        o_.words);
  }

  int run(const Global& global) override {
    check_command_line();
    o_.choice.colours = o_.colours.over(o_.choice.colours);
    switch (run_task(o_.model)) {
      case TaskKind::translation:
        if (o_.patch || o_.resize) throw UsageError(tr("--patch and --resize are for models that classify images"));
        return inspect_translation(o_, global);
      case TaskKind::vision:
        return inspect_vision(o_, global);
      case TaskKind::language:
        return inspect_language(o_, global);
      case TaskKind::encoding:
        return inspect_encoder(o_, global);
    }
    return 1;
  }

 private:
  void check_command_line() const {
    if (o_.model.empty())
      throw UsageError(tr("the option --model DIR is missing"),
                       tr("qkv train --preset transformer makes one in runs/transformer"));
    if (o_.pairs.empty() && o_.words.empty() && run_task(o_.model) == TaskKind::vision)
      throw UsageError(tr("give an image: a PNG file"));
    if (o_.pairs.empty() == o_.words.empty()) throw UsageError(tr("give a sentence, or --pairs FILE and --line N"));
    if (!o_.pairs.empty() && !o_.line) throw UsageError(tr("--pairs needs --line N"));
    if (o_.line && o_.pairs.empty()) throw UsageError(tr("--line goes with --pairs FILE"));
    if (o_.gold && o_.pairs.empty()) throw UsageError(tr("--gold goes with --pairs and --line"));
    if (o_.base && !o_.gold) throw UsageError(tr("--base goes with --gold FILE"));
    if (o_.colours.given() && (o_.json || (o_.output && o_.output->ends_with(".npz"))))
      throw UsageError(tr("--cmap and --range are for pictures; --json and .npz contain numbers"));
    if (o_.by_word && (o_.steps || o_.gold)) throw UsageError(tr("--words excludes --steps and --gold"));
    if (o_.target && !o_.pairs.empty()) throw UsageError(tr("--target and --pairs exclude each other"));
    if (o_.output && !o_.output->ends_with(".npz") && !o_.output->ends_with(".html")) {
      for (const char* ending : {".svg", ".png", ".txt"})
        if (o_.output->ends_with(ending)) return;
      throw UsageError(tr("--output: expected a path that ends in .svg, .png, .html, .txt or .npz, got \"{output}\"",
                          "output"_a = *o_.output));
    }
  }

  InspectOptions o_;
};

}  // namespace

std::string InspectOptions::sentence() const {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

bool InspectOptions::writes_explorer() const {
  return writes(".html") && !choice.values && !choice.rollout && !by_word && !steps && !gold && !colours.given();
}

int write_explorer(const InspectOptions& options, const std::string& text, const std::optional<std::string>& target,
                   const Global& global) {
  serve::RecordOptions record{.text = text, .target = target, .language = global.language};
  if (options.choice.kind != "all") record.part = options.choice.kind;
  record.layer = options.choice.layer;
  record.head = options.choice.head;
  record.beam = options.beam;
  const serve::RecordedPage page = serve::recorded_page(options.model, record);
  write_file(*options.output, page.html);
  for (const Text& what : page.left_out)
    global.note(tr("{file} does not contain {what}", "file"_a = *options.output, "what"_a = what));
  if (!global.quiet) fmt::print("{}\n{}\n", page.title, *options.output);
  return 0;
}

int show_figures(const InspectOptions& options, const std::string& title, const std::vector<Figure>& figures,
                 const std::function<std::string()>& html, const Global& global) {
  if (!options.output) {
    fmt::print("{}\n", title);
    const TerminalOptions view{terminal_columns(STDOUT_FILENO),
                               global.color ? TerminalColour::truecolor : TerminalColour::ascii, global.language};
    for (size_t i = 0; i < figures.size(); ++i) fmt::print("{}{}", i > 0 ? "\n" : "", terminal(figures[i], view));
    return 0;
  }
  if (options.writes(".html"))
    write_file(*options.output, html());
  else
    save(figures, *options.output, global.language);
  if (!global.quiet) fmt::print("{}\n{}\n", title, *options.output);
  return 0;
}

int write_arrays(const InspectOptions& options, const std::string& title, const std::map<std::string, Array>& arrays,
                 const Global& global) {
  write_npz(*options.output, arrays);
  if (!global.quiet) fmt::print("{}\n{}\n", title, *options.output);
  return 0;
}

int show_text(const InspectOptions& o, const std::string& text, const report::SeenPair& seen,
              const report::SeenSentence& title, const Global& global) {
  if (o.json) {
    fmt::print("{}\n", report::text_json(text, seen, o.choice));
    return 0;
  }
  if (o.writes(".npz")) return write_arrays(o, text, report::to_arrays(seen, o.choice), global);
  const bool drawn_as_text = !o.output || o.writes(".txt");
  const auto figures =
      attention_figures(seen, o.choice, {}, drawn_as_text ? report::FigureUse::terminal : report::FigureUse::paper);
  if (report::lacks_words(figures))
    global.note(
        tr("too many heads and words to label: the axes show positions; --layer and --head draw fewer maps, "
           "with words"));
  return show_figures(
      o, text, figures, [&] { return to_html(title, figures, global.language); }, global);
}

std::unique_ptr<Command> inspect_command() { return std::make_unique<Inspect>(); }

}  // namespace qkv::cli
