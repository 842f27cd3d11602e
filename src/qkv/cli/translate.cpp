// qkv translate: sentences from standard input, translations to standard output, line for line.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <ranges>
#include <span>

#include "qkv/cli/command.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/train_ending.h"
#include "qkv/cli/translate_force.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/corpus.h"
#include "qkv/data/text.h"
#include "qkv/report/translations.h"

namespace qkv::cli {
namespace {

// Standard input or files, read block by block: a stream of any length needs memory for one block.
constexpr size_t kBlockLines = 4096;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Translate : public Command {
 public:
  std::string name() const override { return "translate"; }
  Text summary() const override { return {"translates lines of text with a trained model", "用训练好的模型逐行翻译"}; }
  std::string example() const override {
    return "echo 'the red cat is not sleeping .' | qkv translate --model runs/transformer --beam 5\n  qkv translate --model runs/transformer --force ref.txt in.txt";
  }

  void bind(Options& options) override {
    options.option("--model DIR", {"the folder that qkv train wrote", "qkv train 输出的文件夹"}, model_);
    options.option("--beam N",
                   {"hypotheses kept (default: as the model's configuration says)", "束宽（默认取自模型配置）"}, beam_,
                   1, 1000);
    options.option("--length-penalty A", {"log p / length^A ranks hypotheses", "按 log p / 长度^A 排序"}, penalty_, 0,
                   10);
    options.option("--max-length N", {"tokens of a translation at most", "译文的最大词元数"}, max_length_, 1, 100000);
    options.option("--nbest N",
                   {"print the N best of the beam, each as LINE ||| text ||| log p ||| score",
                    "输出束中最好的 N 个：行号 ||| 译文 ||| log p ||| 得分"},
                   nbest_, 1, 1000);
    options.option(
        "--force FILE",
        {"translate nothing: print the log-probability of each line of this file as the translation, and their perplexity",
         "不翻译：输出该文件各行作为译文的对数概率，以及总困惑度"},
        force_);
    options.option_or_bare(
        "--sample [N]",
        {"draw translations at random instead of searching; N of each line (default 1), several printed as with --nbest",
         "随机采样译文而非搜索；每行 N 个（默认 1），多个时按 --nbest 的格式输出"},
        sample_, 1, 1, 10000);
    options.option("--temperature T",
                   {"of --sample: below 1 sharper, 0 the likeliest token always (default 1)",
                    "采样温度：小于 1 更集中，0 总取最可能的词元（默认 1）"},
                   temperature_, 0, 100);
    options.option("--top-k K", {"of --sample: only the K likeliest tokens", "采样时只取最可能的 K 个词元"}, top_k_, 1,
                   1'000'000'000);
    options.option(
        "--top-p P",
        {"of --sample: only the fewest tokens that have probability P together", "采样时只取累计概率达到 P 的最少词元"},
        top_p_, 0, 1);
    options.flag(
        "--scores",
        {"put log p and score behind each translation, separated by tabs", "在译文后附上 log p 与得分（制表符分隔）"},
        scores_);
    options.flag(
        "--attention",
        {"with --json: the weights of every output token on the source; of a Transformer for every layer and head",
         "与 --json 合用：每个输出词元对源句的注意力权重；Transformer 按层与头给出"},
        attention_);
    options.flag("--json", {"one JSON object a line", "每行一个 JSON 对象"}, json_);
    options.option("--rows N", {"sentences decoded at once", "同时解码的句子数"}, rows_, 1, 100000);
    options.positionals(
        "FILE",
        {"texts to translate instead of standard input; - is standard input", "要翻译的文件（默认标准输入，即 -）"},
        files_);
  }

  int run(const Global& global) override {
    if (model_.empty())
      throw UsageError("the option --model DIR is missing",
                       "qkv train --preset transformer makes one, runs/transformer");
    check_options();
    const Translator translator(model_);
    check(!attention_ || translator.model().facts().source_maps(), model_,
          ": --attention: this model has none (model.attention is none)");
    unknown_ = UnknownWords(global.quiet);
    note_unfinished(model_, global.quiet);
    if (force_) {
      print_forced(translator, {.source = files_.empty() ? "-" : files_[0],
                                .reference = *force_,
                                .rows = rows_.value_or(0),
                                .json = json_,
                                .attention = attention_,
                                .quiet = global.quiet});
      return 0;
    }
    TranslateOptions options = translator.defaults();
    options.keep_attention = attention_;
    if (beam_) options.beam = *beam_;
    if (penalty_) options.length_penalty = *penalty_;
    if (max_length_) options.max_length = *max_length_;
    if (rows_) options.rows = *rows_;
    if (nbest_) options.best = *nbest_, options.beam = std::max(options.beam, *nbest_);
    if (sample_)
      options.sampling = {.samples = *sample_,
                          .temperature = temperature_.value_or(1),
                          .top_k = top_k_.value_or(0),
                          .top_p = top_p_.value_or(1),
                          .seed = global.seed};
    for (const std::string& file : files_.empty() ? std::vector<std::string>{"-"} : files_) {
      options.name = input_name(file);
      if (file == "-") {
        if (::isatty(STDIN_FILENO))
          global.note({"type sentences, one per line; Ctrl-D ends", "请输入句子，每行一句；Ctrl-D 结束"});
        std::ios::sync_with_stdio(false);  // else it is never known that more lines wait, and each is decoded alone
        translate_stream(translator, options, std::cin);
      } else {
        const std::vector<std::string> lines = lines_of(file, global.language);
        for (size_t begin = 0; begin < lines.size(); begin += kBlockLines) {
          options.first_line = begin + 1;
          translate_lines(translator, options,
                          std::span(lines).subspan(begin, std::min(kBlockLines, lines.size() - begin)));
        }
        options.first_line = 1;
      }
    }
    note_cut_off(global);
    return 0;
  }

 private:
  // What cannot be meant, before the model is read.
  void check_options() const {
    if (nbest_ && beam_ && *nbest_ > *beam_)
      throw UsageError(text("--nbest ", *nbest_, " of a beam of ", *beam_, ": the beam must hold as many"));
    if (attention_ && !json_) throw UsageError("--attention is for --json");
    if (top_p_ && *top_p_ == 0) throw UsageError("--top-p: got \"0\", expected a number above 0 and at most 1");
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
      if (given && !sample_) throw UsageError(text(name, " is for --sample"));
    for (const auto& [name, given] : of_search)
      if (given && sample_)
        throw UsageError(text("--sample and ", name,
                              " exclude each other: one draws translations, the other searches for the best"));
    for (const auto& [name, given] : of_both)
      if (given && force_)
        throw UsageError(text("--force and ", name, " exclude each other: with --force the translations are given"));
    if (force_ && files_.size() > 1)
      throw UsageError(text("--force takes one FILE to go with it, got ", files_.size()));
    if (force_ && *force_ == "-" && (files_.empty() || files_[0] == "-"))
      throw UsageError("--force -: standard input cannot be both sides: name the FILE to translate");
  }

  // A sentence in the place of a file is the likeliest mistake of all: what to type instead is said.
  std::vector<std::string> lines_of(const std::string& file, Language language) const {
    try {
      return read_lines(file);
    } catch (const Error& e) {
      std::error_code ignored;
      if (std::filesystem::exists(file, ignored)) throw;
      throw Error(
          e.what(),
          Text{"FILE is a text to read; a sentence goes in like this: ", "FILE 是要读入的文本；句子应这样输入："}.in(
              language) +
              fmt::format("echo {} | qkv translate --model {}", sentence_meant(), model_));
    }
  }

  // The words of the command line in quotes for the shell, if they may be a sentence.
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
        fail(options.name, ": line ", options.first_line + block.size(), ": byte ", bad + 1, " is not UTF-8");
      }
      if (options.first_line == 1 && block.empty() && sentence.starts_with(kByteOrderMark))
        sentence.erase(0, kByteOrderMark.size());
      block.push_back(std::move(sentence));
      // A person or a program may be waiting for the answer to the last line.
      if (block.size() < kBlockLines && in.rdbuf()->in_avail() > 0) continue;
      translate_lines(translator, options, block);
      std::fflush(stdout);
      options.first_line += block.size();
      block.clear();
    }
    check(!in.bad(), "cannot read ", options.name);
    if (!block.empty()) translate_lines(translator, options, block);
  }

  // A line that cannot be translated ends it, after those before it.
  void translate_lines(const Translator& translator, const TranslateOptions& options,
                       std::span<const std::string> lines) {
    std::vector<Translation> translations;
    try {
      translations = translator.translate(lines, options);
    } catch (const Error&) {
      const size_t good = translator.readable(lines);
      if (good > 0 && good < lines.size()) translate_lines(translator, options, lines.first(good));
      throw;
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      print(translator, lines[i], translations[i], options.name, options.first_line + i);
      for (const Hypothesis& h : translations[i].hypotheses | std::views::take(1))
        if (!h.ended && cut_off_++ == 0) {
          first_cut_ = text(options.name, ": line ", options.first_line + i), first_length_ = h.tokens.size();
          cut_by_option_ = std::ssize(h.tokens) >= options.max_length;
        }
    }
  }

  // Half a sentence looks like a whole one.
  void note_cut_off(const Global& global) const {
    if (cut_off_ == 0) return;
    const Text why = cut_by_option_ ? Text{"--max-length", "--max-length"}
                                    : Text{"the model has learned no further positions", "模型没有学过更远的位置"};
    global.note({text(first_cut_, cut_off_ > 1 ? text(" and ", cut_off_ - 1, " more") : "", ": cut off after ",
                      first_length_, first_length_ == 1 ? " token" : " tokens", " (", why.en, ")"),
                 text(first_cut_, cut_off_ > 1 ? text(" 等共 ", cut_off_, " 行") : "", "：译文在 ", first_length_,
                      " 个词元后被截断（", why.zh, "）")});
  }

  void print(const Translator& translator, const std::string& sentence, const Translation& t, const std::string& file,
             size_t line) {
    unknown_.note(translator.tokenizers().source, sentence, t.source, fmt::format("{}: line {}", file, line));
    if (json_) {
      const report::TranslationPlace place{
          .file = files_.size() > 1 ? file : "", .line = line, .attention = attention_};
      return fmt::print("{}\n", report::to_json(translator, sentence, t, place));
    }
    if (nbest_ || sample_.value_or(1) > 1) {
      if (t.hypotheses.empty()) fmt::print("{} |||  ||| 0.0000 ||| 0.0000\n", line);
      for (const Hypothesis& h : t.hypotheses)
        fmt::print("{} ||| {} ||| {:.4f} ||| {:.4f}\n", line, translator.text(h, t.writing), h.log_probability,
                   h.score);
      return;
    }
    if (t.hypotheses.empty()) {
      fmt::print("{}\n", scores_ ? "\t0.0000\t0.0000" : "");
      return;
    }
    const Hypothesis& best = t.hypotheses[0];
    if (scores_)
      fmt::print("{}\t{:.4f}\t{:.4f}\n", translator.text(best, t.writing), best.log_probability, best.score);
    else
      fmt::print("{}\n", translator.text(best, t.writing));
  }

  std::string model_;
  std::vector<std::string> files_;
  std::optional<std::string> force_;
  std::optional<int64_t> beam_, max_length_, nbest_, rows_, sample_, top_k_;
  std::optional<double> penalty_, temperature_, top_p_;
  UnknownWords unknown_{false};
  int64_t cut_off_ = 0;    // translations that reached the longest length before their end
  std::string first_cut_;  // where, and how many tokens it has
  size_t first_length_ = 0;
  bool cut_by_option_ = false;  // or else by the table of learned positions
  bool scores_ = false, attention_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> translate_command() { return std::make_unique<Translate>(); }

}  // namespace qkv::cli
