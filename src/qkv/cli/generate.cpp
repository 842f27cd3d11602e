// qkv generate: continues prompts with a trained language model, or fills their gaps.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "qkv/cli/command.h"
#include "qkv/cli/interrupt.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_text.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/text.h"
#include "qkv/report/language.h"

namespace qkv::cli {
namespace {

constexpr int64_t kCandidates = 5;

// \n, \t and \\ of a command line.
std::string with_escapes(const std::string& given) {
  std::string out;
  for (size_t i = 0; i < given.size(); ++i) {
    const char next = given[i] == '\\' && i + 1 < given.size() ? given[i + 1] : '\0';
    if (next == 'n' || next == 't' || next == '\\') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
      ++i;
    } else {
      out += given[i];
    }
  }
  return out;
}

class Generate : public Command {
 public:
  std::string name() const override { return "generate"; }
  Text summary() const override { return tr("continues prompts with a language model, or fills their gaps"); }
  std::string example() const override {
    return "qkv generate --model runs/lm --prompt 'the red cat' --stop '\\n'\n"
           "  qkv generate --model runs/lm --temperature 0 --max-tokens 50 prompts.txt --json\n"
           "  qkv generate --model gpt2 --prompt 'The animal did not cross the street because' --temperature 0\n"
           "  qkv generate --model runs/masked-lm --prompt 'the [MASK] cat is sleeping .'";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("the folder that qkv train wrote, or a pretrained one"), model_);
    options.option("--prompt TEXT",
                   tr("the beginning of the text, or a text with gaps, each written [MASK]; may be repeated; \\n is a "
                      "line end"),
                   prompts_);
    options.option("--max-tokens N", tr("tokens written after a prompt (default: from the model's configuration)"),
                   max_tokens_, 1, 10'000'000);
    options.option("--temperature T",
                   tr("below 1 is sharper, 0 always takes the likeliest token (default: from the configuration)"),
                   temperature_, 0, 100);
    options.option("--top-k K", tr("draw from the K likeliest tokens only"), top_k_, 1, 1'000'000'000);
    options.option("--top-p P", tr("draw from the likeliest tokens only, up to total probability P"), top_p_, 0, 1);
    options.option("--repetition-penalty X", tr("above 1: tokens that were read or written before become less likely"),
                   penalty_, 0.01, 100);
    options.option("--stop TEXT", tr("end a text before this; may be repeated; \\n is a line end"), stops_);
    options.option("--samples N", tr("texts per prompt (default 1)"), samples_, 1, 10'000);
    options.option("--candidates N", tr("masked models: likely tokens listed for each gap (default 5)"), candidates_, 1,
                   1000);
    options.option("--rows N", tr("prompts continued at once"), rows_, 1, 100'000);
    options.flag("--only-new", tr("print the new text without the prompt"), only_new_);
    options.flag("--json", tr("print one JSON object per prompt, with the probability of every token"), json_);
    options.positionals("FILE", tr("files of prompts, one per line (-: standard input)"), files_);
  }

  int run(const Global& global) override {
    if (model_.empty())
      throw UsageError(tr("the option --model DIR is missing"), tr("qkv train --preset lm makes one in runs/lm"));
    if (top_p_ && *top_p_ == 0) throw UsageError(tr("--top-p: got \"0\", expected a number above 0 and at most 1"));
    for (std::string& stop : stops_) {
      if (stop.empty()) throw UsageError(tr("--stop: the text is empty"));
      stop = with_escapes(stop);
    }
    const LanguageGenerator generator(model_);
    check_objective(generator.objective());
    note_unfinished(model_, global);
    const std::vector<std::string> prompts = all_prompts(global);
    GenerateOptions options = generator.defaults();
    if (max_tokens_) options.max_tokens = *max_tokens_;
    if (temperature_) options.temperature = *temperature_;
    if (top_k_) options.top_k = *top_k_;
    if (top_p_) options.top_p = *top_p_;
    if (penalty_) options.repetition_penalty = *penalty_;
    if (rows_) options.rows = *rows_;
    options.samples = samples_.value_or(1);
    options.seed = global.seed;
    options.stops = stops_;
    for (size_t i = 0; i < prompts.size(); ++i) note_prompt(generator, prompts[i], i, prompts.size(), global);
    if (generator.objective() != LanguageObjective::causal) return fill(generator, prompts, options, global);
    const InterruptScope scope;
    options.stop = &interrupted();
    continue_prompts(generator, prompts, options);
    return interrupted().load() ? kInterrupted : 0;
  }

 private:
  std::vector<std::string> all_prompts(const Global& global) const {
    std::vector<std::string> out;
    for (const std::string& prompt : prompts_) out.push_back(with_escapes(prompt));
    const bool from_input = prompts_.empty() && files_.empty();
    if (from_input && ::isatty(STDIN_FILENO)) global.note(tr("type prompts, one per line; Ctrl-D ends"));
    for (const std::string& file : from_input ? std::vector<std::string>{"-"} : files_)
      for (std::string& line : read_text_lines(file)) out.push_back(std::move(line));
    for (const std::string& prompt : out) check_utf8(prompt, tr("the prompt"));
    return out;
  }

  // An option that this model would ignore is refused.
  void check_objective(LanguageObjective objective) const {
    const bool causal = objective == LanguageObjective::causal, masked = objective == LanguageObjective::masked;
    const auto refuse_if = [&](bool given, const char* option) {
      if (given)
        throw UsageError(tr("{option} does not apply to this model (model.objective is {objective})",
                            "option"_a = option, "objective"_a = objective));
    };
    refuse_if(!causal && samples_, "--samples");
    refuse_if(!causal && !stops_.empty(), "--stop");
    refuse_if(!causal && only_new_, "--only-new");
    refuse_if(!causal && rows_, "--rows");
    refuse_if(!masked && candidates_, "--candidates");
    refuse_if(masked && max_tokens_, "--max-tokens");
    refuse_if(masked && temperature_, "--temperature");
    refuse_if(masked && top_k_, "--top-k");
    refuse_if(masked && top_p_, "--top-p");
    refuse_if(masked && penalty_, "--repetition-penalty");
  }

  static void note_prompt(const LanguageGenerator& generator, const std::string& prompt, size_t number, size_t count,
                          const Global& global) {
    const Text where = count == 1 ? tr("the prompt") : tr("prompt {number}", "number"_a = number + 1);
    note_unknown(generator.unknown(prompt), where, global);
    const int64_t tokens = std::ssize(generator.tokenizer().encode(prompt)), context = generator.config().model.context;
    if (tokens > context && generator.objective() == LanguageObjective::causal)
      global.note(tr("{where}: has {tokens} tokens; the model reads the last {context}", "where"_a = where,
                     "tokens"_a = tokens, "context"_a = context));
  }

  // One text is printed while it is written; of several, each when all of its batch are done.
  void continue_prompts(const LanguageGenerator& generator, const std::vector<std::string>& prompts,
                        GenerateOptions options) const {
    const bool single = prompts.size() == 1 && options.samples == 1 && !json_;
    if (single) {
      if (!only_new_) fmt::print("{}", prompts[0]);
      std::fflush(stdout);
      options.on_text = [](size_t, size_t, const std::string& piece) {
        fmt::print("{}", piece);
        std::fflush(stdout);
      };
      generator.generate(prompts, options);
      fmt::print("\n");
      return;
    }
    const auto block = static_cast<size_t>(options.rows);
    bool first = true;
    for (size_t begin = 0; begin < prompts.size() && !interrupted().load(); begin += block) {
      const auto some = std::span(prompts).subspan(begin, std::min(block, prompts.size() - begin));
      const std::vector<Continued> done = generator.generate(some, options);
      for (size_t i = 0; i < done.size(); ++i) {
        if (json_) {
          fmt::print("{}\n", report::to_json(generator, some[i], done[i]));
          continue;
        }
        for (const GeneratedText& text : done[i].texts) {
          fmt::print("{}{}{}\n", std::exchange(first, false) ? "" : "\n", only_new_ ? "" : some[i], text.text);
        }
      }
      std::fflush(stdout);
    }
  }

  int fill(const LanguageGenerator& generator, const std::vector<std::string>& prompts, const GenerateOptions& options,
           const Global& global) const {
    for (const std::string& prompt : prompts) {
      const Filled filled = generator.fill(prompt, candidates_.value_or(kCandidates), options);
      if (json_)
        fmt::print("{}\n", report::to_json(generator, prompt, filled));
      else
        fmt::print("{}", report::to_text(generator, filled, global.language));
    }
    return 0;
  }

  std::string model_;
  std::vector<std::string> prompts_, files_, stops_;
  std::optional<int64_t> max_tokens_, top_k_, rows_, samples_, candidates_;
  std::optional<double> temperature_, top_p_, penalty_;
  bool only_new_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> generate_command() { return std::make_unique<Generate>(); }

}  // namespace qkv::cli
