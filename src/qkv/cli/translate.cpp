// qkv translate: reads sentences from standard input and prints their translations, line by line.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <ranges>
#include <span>
#include <sstream>

#include "qkv/cli/command.h"
#include "qkv/cli/rank_job.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/train_task.h"
#include "qkv/cli/translate_force.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/core/counts.h"
#include "qkv/data/corpus.h"
#include "qkv/data/text.h"
#include "qkv/report/translations.h"

namespace qkv::cli {
namespace {

// Input is read in blocks of this many lines, so a stream of any length needs memory for one block.
constexpr size_t kBlockLines = 4096;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Translate : public Command {
 public:
  std::string name() const override { return "translate"; }
  Text summary() const override { return tr("translates lines of text with a trained model"); }
  std::string example() const override {
    return "echo 'the red cat is not sleeping .' | qkv translate --model runs/transformer --beam 5\n"
           "  qkv translate --model runs/transformer --force ref.txt in.txt";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("the folder that qkv train wrote, or a pretrained one"), model_);
    options.option("--beam N", tr("hypotheses kept (default: from the model's configuration)"), beam_, 1, 1000);
    options.option("--length-penalty A", tr("rank hypotheses by log p / length^A"), penalty_, 0, 10);
    options.option("--max-length N", tr("maximum number of tokens of a translation"), max_length_, 1, 100000);
    options.option("--nbest N", tr("print the N best of the beam, each as LINE ||| text ||| log p ||| score"), nbest_,
                   1, 1000);
    options.option(
        "--force FILE",
        tr("do not translate: print the log-probability of each line of this file as the translation, and the overall "
           "perplexity"),
        force_);
    options.option_or_bare(
        "--sample [N]",
        tr("draw translations at random instead of searching: N per line (default 1); several are printed as with "
           "--nbest"),
        sample_, 1, 1, 10000);
    options.option("--temperature T",
                   tr("for --sample: below 1 is sharper, 0 always takes the likeliest token (default 1)"), temperature_,
                   0, 100);
    options.option("--top-k K", tr("for --sample: only the K likeliest tokens"), top_k_, 1, 1'000'000'000);
    options.option("--top-p P", tr("for --sample: only the likeliest tokens, up to total probability P"), top_p_, 0, 1);
    options.flag("--scores", tr("print log p and score after each translation, separated by tabs"), scores_);
    options.flag(
        "--attention",
        tr("with --json: add the attention of every output token to the source; for a Transformer, per layer and head"),
        attention_);
    options.flag("--json", tr("print one JSON object per line"), json_);
    options.option("--rows N", tr("sentences decoded at once"), rows_, 1, 100000);
    job_.bind(options);
    options.positionals("FILE", tr("text files to translate (default, or -: standard input)"), files_);
  }

  int run(const Global& global) override {
    if (model_.empty())
      throw UsageError(tr("the option --model DIR is missing"),
                       tr("qkv train --preset transformer makes one in runs/transformer"));
    check_options();
    if (force_) return translate(nullptr, global);
    return on_ranks(job_, global, [&](Ranks* ranks, const Global& own) { return translate(ranks, own); });
  }

 private:
  int translate(Ranks* ranks, const Global& global) {
    ranks_ = ranks;
    const Translator translator(model_);
    require(!attention_ || translator.model().facts().source_maps(),
            "{model}: --attention: this model has no attention (model.attention is none)", "model"_a = model_);
    unknown_.emplace(global);
    note_unfinished(model_, global);
    if (force_) {
      print_forced(translator,
                   {.source = files_.empty() ? "-" : files_[0],
                    .reference = *force_,
                    .rows = rows_.value_or(0),
                    .json = json_,
                    .attention = attention_},
                   global);
      return 0;
    }
    TranslateOptions options = translator.defaults();
    options.keep_attention = attention_;
    if (beam_) options.beam = *beam_;
    if (penalty_) options.length_penalty = *penalty_;
    if (max_length_) options.max_length = *max_length_;
    if (rows_) options.rows = *rows_;
    if (nbest_) {
      options.best = *nbest_;
      options.beam = std::max(options.beam, *nbest_);
    }
    if (sample_)
      options.sampling = {.samples = *sample_,
                          .temperature = temperature_.value_or(1),
                          .top_k = top_k_.value_or(0),
                          .top_p = top_p_.value_or(1),
                          .seed = global.seed};
    for (const std::string& file : files_.empty() ? std::vector<std::string>{"-"} : files_) {
      options.name = input_name(file);
      if (file == "-" && ranks) {
        translate_all(translator, options, shared_input());
      } else if (file == "-") {
        if (::isatty(STDIN_FILENO)) global.note(tr("type sentences, one per line; Ctrl-D ends"));
        std::ios::sync_with_stdio(false);  // else in_avail() never sees waiting lines, and each is decoded alone
        translate_stream(translator, options, std::cin);
      } else {
        translate_all(translator, options, lines_of(file));
      }
    }
    note_cut_off(global);
    return 0;
  }

  void translate_all(const Translator& translator, TranslateOptions options, const std::vector<std::string>& lines) {
    for (size_t begin = 0; begin < lines.size(); begin += kBlockLines) {
      options.first_line = begin + 1;
      translate_lines(translator, options,
                      std::span(lines).subspan(begin, std::min(kBlockLines, lines.size() - begin)));
    }
  }

  // The standard input of a job is that of rank 0.
  std::vector<std::string> shared_input() const {
    std::string all;
    size_t number = 0;
    for (std::string line; ranks_->rank() == 0 && std::getline(std::cin, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
      const size_t bad = find_invalid_utf8(line);
      require(bad == std::string::npos, "{name}: line {line}: byte {byte} is not UTF-8", "name"_a = input_name("-"),
              "line"_a = number, "byte"_a = bad + 1);
      all += line + "\n";
    }
    ranks_->set_patient(true);  // rank 0 may wait for whoever writes the text
    std::istringstream text(ranks_->broadcast(all));
    ranks_->set_patient(false);
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  // Refuses options that contradict each other, before the model is read.
  void check_options() const {
    if (nbest_ && beam_ && *nbest_ > *beam_)
      throw UsageError(tr("--nbest {nbest} is more than --beam {beam}", "nbest"_a = *nbest_, "beam"_a = *beam_));
    if (attention_ && !json_) throw UsageError(tr("--attention needs --json"));
    if (top_p_ && *top_p_ == 0) throw UsageError(tr("--top-p: got \"0\", expected a number above 0 and at most 1"));
    using Given = std::pair<const char*, bool>;
    const Given of_sample[] = {
        {"--temperature", temperature_.has_value()}, {"--top-k", top_k_.has_value()}, {"--top-p", top_p_.has_value()}};
    const Given of_search[] = {{"--beam", beam_ && *beam_ > 1}, {"--nbest", nbest_.has_value()}};
    const Given of_both[] = {{"--sample", sample_.has_value()},
                             {"--beam", beam_.has_value()},
                             {"--nbest", nbest_.has_value()},
                             {"--max-length", max_length_.has_value()},
                             {"--length-penalty", penalty_.has_value()},
                             {"--scores", scores_}};
    for (const auto& [name, given] : of_sample)
      if (given && !sample_) throw UsageError(tr("{name} needs --sample", "name"_a = name));
    for (const auto& [name, given] : of_search)
      if (given && sample_)
        throw UsageError(
            tr("--sample and {name} exclude each other: --sample draws translations, --beam and --nbest search for the "
               "best",
               "name"_a = name));
    for (const auto& [name, given] : of_both)
      if (given && force_)
        throw UsageError(
            tr("--force and {name} exclude each other: with --force the translations are given", "name"_a = name));
    if (force_ && files_.size() > 1)
      throw UsageError(tr("--force takes one FILE, got {files}", "files"_a = files_.size()));
    if (force_ && *force_ == "-" && (files_.empty() || files_[0] == "-"))
      throw UsageError(tr("--force -: standard input cannot be both source and translation: give the source as FILE"));
  }

  // A sentence instead of a file is the most likely mistake: the hint says what to type.
  std::vector<std::string> lines_of(const std::string& file) const {
    try {
      return read_lines(file);
    } catch (const Error& e) {
      std::error_code ignored;
      if (std::filesystem::exists(file, ignored)) throw;
      throw Error(e.message(),
                  tr("FILE is a text file; to translate a sentence: {command}",
                     "command"_a = fmt::format("echo {} | qkv translate --model {}", sentence_meant(), model_)));
    }
  }

  // The words of the command line quoted for the shell, if they may be a sentence.
  std::string sentence_meant() const {
    std::string sentence;
    for (const std::string& word : files_) sentence += (sentence.empty() ? "" : " ") + word;
    return sentence.find(' ') == std::string::npos ? "'...'" : shell_word(sentence);
  }

  void translate_stream(const Translator& translator, TranslateOptions options, std::istream& in) {
    std::vector<std::string> block;
    for (std::string sentence; std::getline(in, sentence);) {
      if (!sentence.empty() && sentence.back() == '\r') sentence.pop_back();
      if (const size_t bad = find_invalid_utf8(sentence); bad != std::string::npos) {
        translate_lines(translator, options, block);
        refuse("{name}: line {line}: byte {byte} is not UTF-8", "name"_a = options.name,
               "line"_a = options.first_line + block.size(), "byte"_a = bad + 1);
      }
      if (options.first_line == 1 && block.empty() && sentence.starts_with(kByteOrderMark))
        sentence.erase(0, kByteOrderMark.size());
      block.push_back(std::move(sentence));
      // A person or a program may be waiting for the translation of the last line.
      if (block.size() < kBlockLines && in.rdbuf()->in_avail() > 0) continue;
      translate_lines(translator, options, block);
      std::fflush(stdout);
      options.first_line += block.size();
      block.clear();
    }
    require(!in.bad(), "cannot read {name}", "name"_a = options.name);
    if (!block.empty()) translate_lines(translator, options, block);
  }

  // A line that cannot be translated is an error, after the lines before it are translated.
  void translate_lines(const Translator& translator, const TranslateOptions& options,
                       std::span<const std::string> lines) {
    if (ranks_ && ranks_->size() > 1) return translate_share(translator, options, lines);
    std::vector<Translation> translations;
    try {
      translations = translator.translate(lines, options);
    } catch (const Error&) {
      const size_t good = translator.readable(lines);
      if (good > 0 && good < lines.size()) translate_lines(translator, options, lines.first(good));
      throw;
    }
    for (size_t i = 0; i < lines.size(); ++i)
      show(translator, lines[i], options, options.first_line + i,
           answer(translator, lines[i], translations[i], options, options.first_line + i));
  }

  /// What is printed for a line, and what notes need to know about it.
  struct Answer {
    std::string printed;
    std::vector<int32_t> source;
    uint64_t cut_after = 0;  // tokens; 0: it was not cut off
  };

  // A sentence has the same translation in any batch, so ranks may take neighbouring lines.
  void translate_share(const Translator& translator, const TranslateOptions& options,
                       std::span<const std::string> lines) {
    const auto compute = [&](int64_t begin, int64_t end) {
      TranslateOptions own = options;
      own.first_line += static_cast<size_t>(begin);
      const auto part = lines.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      const std::vector<Translation> translations = translator.translate(part, own);
      std::vector<std::string> out;
      for (size_t i = 0; i < part.size(); ++i) {
        const Answer one = answer(translator, part[i], translations[i], own, own.first_line + i);
        std::string packed(reinterpret_cast<const char*>(&one.cut_after), sizeof one.cut_after);
        const uint64_t count = one.source.size();
        packed.append(reinterpret_cast<const char*>(&count), sizeof count);
        packed.append(reinterpret_cast<const char*>(one.source.data()), count * sizeof(int32_t));
        out.push_back(packed + one.printed);
      }
      return out;
    };
    const std::vector<std::string> answers = shared_texts(ranks_, std::ssize(lines), compute);
    if (ranks_->rank() > 0) return;
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string& packed = answers[i];
      Answer one;
      uint64_t count = 0;
      std::memcpy(&one.cut_after, packed.data(), sizeof one.cut_after);
      std::memcpy(&count, packed.data() + sizeof count, sizeof count);
      one.source.resize(count);
      std::memcpy(one.source.data(), packed.data() + 2 * sizeof count, count * sizeof(int32_t));
      one.printed = packed.substr(2 * sizeof count + count * sizeof(int32_t));
      show(translator, lines[i], options, options.first_line + i, one);
    }
  }

  void show(const Translator& translator, const std::string& sentence, const TranslateOptions& options, size_t line,
            const Answer& one) {
    const Text place = tr("{file}: line {line}", "file"_a = options.name, "line"_a = line);
    unknown_->note(translator.tokenizers().source, sentence, one.source, place);
    fmt::print("{}", one.printed);
    if (one.cut_after == 0 || cut_off_++ > 0) return;
    first_cut_ = place;
    first_length_ = one.cut_after;
    cut_by_option_ = static_cast<int64_t>(one.cut_after) >= options.max_length;
  }

  // A translation that is cut off may look complete.
  void note_cut_off(const Global& global) const {
    if (cut_off_ == 0) return;
    const Text why = cut_by_option_ ? verbatim("--max-length") : tr("the model has learned no further positions");
    if (cut_off_ > 1)
      global.note(tr("{line} and {more} more: cut off after {tokens} ({why})", "line"_a = first_cut_,
                     "more"_a = cut_off_ - 1, "tokens"_a = token_count(first_length_), "why"_a = why));
    else
      global.note(tr("{line}: cut off after {tokens} ({why})", "line"_a = first_cut_,
                     "tokens"_a = token_count(first_length_), "why"_a = why));
  }

  Answer answer(const Translator& translator, const std::string& sentence, const Translation& t,
                const TranslateOptions& options, size_t line) const {
    Answer out{.printed = printed(translator, sentence, t, options.name, line),
               .source = {t.source.begin(), t.source.end()}};
    if (!t.hypotheses.empty() && !t.hypotheses[0].ended) out.cut_after = t.hypotheses[0].tokens.size();
    return out;
  }

  std::string printed(const Translator& translator, const std::string& sentence, const Translation& t, const Text& file,
                      size_t line) const {
    if (json_) {
      const report::TranslationPlace place{
          .file = files_.size() > 1 ? file.in(Language::en) : "", .line = line, .attention = attention_};
      return report::to_json(translator, sentence, t, place) + "\n";
    }
    if (nbest_ || sample_.value_or(1) > 1) {
      if (t.hypotheses.empty()) return fmt::format("{} |||  ||| 0.0000 ||| 0.0000\n", line);
      std::string out;
      for (const Hypothesis& h : t.hypotheses)
        out += fmt::format("{} ||| {} ||| {:.4f} ||| {:.4f}\n", line, translator.text(h, t.writing), h.log_probability,
                           h.score);
      return out;
    }
    if (t.hypotheses.empty()) return scores_ ? "\t0.0000\t0.0000\n" : "\n";
    const Hypothesis& best = t.hypotheses[0];
    if (!scores_) return translator.text(best, t.writing) + "\n";
    return fmt::format("{}\t{:.4f}\t{:.4f}\n", translator.text(best, t.writing), best.log_probability, best.score);
  }

  std::string model_;
  RankChoice job_;
  Ranks* ranks_ = nullptr;  // that share the lines
  std::vector<std::string> files_;
  std::optional<std::string> force_;
  std::optional<int64_t> beam_, max_length_, nbest_, rows_, sample_, top_k_;
  std::optional<double> penalty_, temperature_, top_p_;
  std::optional<UnknownWords> unknown_;
  int64_t cut_off_ = 0;  // translations that reached the longest length before their end
  Text first_cut_;       // the first of them, and its number of tokens
  size_t first_length_ = 0;
  bool cut_by_option_ = false;  // else by the table of learned positions
  bool scores_ = false, attention_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> translate_command() { return std::make_unique<Translate>(); }

}  // namespace qkv::cli
