// qkv check: proves by perturbation that a trained model sees nothing that it must not see.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/corpus.h"
#include "qkv/data/shuffle.h"
#include "qkv/tasks/leaks.h"
#include "qkv/tasks/translation/task.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongest = 200;  // tokens of a sentence that is tried

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
      return {"every later target token another", "之后的目标词元全部改变"};
    case Leak::padding:
      return {"more padding, other ids in it", "更多填充，填充内容任意"};
    case Leak::batch_mates:
      return {"other rows in the batch, other order", "批量中的其他句子与次序改变"};
    case Leak::cache:
      return {"one token at a time, from the cache", "用缓存逐个词元计算"};
  }
  return {"", ""};
}

class Check : public Command {
 public:
  std::string name() const override { return "check"; }
  Text summary() const override {
    return {"proves that a model's outputs depend on no later token, no padding and no batch mate",
            "用扰动证明模型的输出不依赖之后的词元、填充和同批句子"};
  }
  std::string example() const override {
    return "qkv check --model runs/transformer\n  qkv check --model runs/transformer --data pairs.tsv --count 50";
  }

  void bind(Options& o) override {
    o.option("--model DIR", {"the folder that qkv train wrote", "qkv train 输出的文件夹"}, model_);
    o.option(
        "--data FILE",
        {"tab-separated sentence pairs to try; random tokens when absent", "用于检查的制表符分隔句对；默认随机词元"},
        data_);
    o.option("--count N", {"pairs to try, chosen by --seed", "检查的句对数，由 --seed 抽取"}, count_, 1, 100'000);
    o.flag("--json", {"print the result as JSON", "以 JSON 打印结果"}, json_);
  }

  int run(const Global& global) override {
    if (model_.empty())
      throw UsageError("the option --model DIR is missing",
                       "qkv train --preset transformer makes one, runs/transformer");
    const Translator translator(model_);
    note_unfinished(model_, global.quiet);
    const LeakSubject subject = leak_subject(translator);
    const Rng rng = Rng(global.seed).at("check");
    const std::vector<IdPair> pairs =
        data_.empty() ? random_pairs(translator, count_, rng) : pairs_of(translator, subject, rng, global);
    const LeakOptions options{.seed = global.seed};
    const LeakReport report = leaks(subject, pairs, options);
    if (json_)
      print_json(report, pairs.size());
    else
      print(report, pairs.size(), options, translator, global);
    return report.passed() ? 0 : 1;
  }

 private:
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
    check(!out.empty(), data_, ": has no pair of sentences of 1 to ", most - 1, " tokens");
    if (left_out > 0)
      global.note({text(data_, ": ", left_out, left_out == 1 ? " pair is" : " pairs are",
                        " left out, with a side that is empty or of more than ", most - 1, " tokens"),
                   text(data_, "：略过 ", left_out, " 个句对，其一侧为空或超过 ", most - 1, " 个词元")});
    return out;
  }

  void print(const LeakReport& report, size_t pairs, const LeakOptions& options, const Translator& translator,
             const Global& global) const {
    const auto say = [&](const Text& t) { return t.in(global.language); };
    fmt::print("{}\n", say({text(model_, ": ", pairs, pairs == 1 ? " pair" : " pairs",
                                 data_.empty() ? " of random tokens" : " of " + data_),
                            text(model_, "：", pairs, " 个句对，", data_.empty() ? "随机词元" : data_)}));
    fmt::print("{:>9} {:>14} {:>12}\n", say({"tried", "次数"}), say({"scores", "得分数"}), say({"largest", "最大差"}));
    for (const LeakResult& r : report.results) {
      std::string verdict = say(r.passed ? Text{"ok", "通过"} : Text{"FAILED", "未通过"});
      if (!r.passed && r.tried > 0)
        verdict += say({text(", most at output ", r.position + 1, " of pair ", r.pair + 1),
                        text("，最大差在第 ", r.pair + 1, " 对的第 ", r.position + 1, " 个输出")});
      fmt::print("{:>9} {:>14} {:>12}  {}: {}\n", r.tried, r.compared,
                 r.largest == 0 ? "0" : fmt::format("{:.2g}", r.largest), say(changed(r.kind)), verdict);
    }
    fmt::print(
        "{}\n",
        say({text(
                 "largest: difference of a score, 0 when all bits are equal; of the cache relative to the largest score, at most ",
                 options.cache_tolerance),
             text("最大差：得分之差，0 表示逐位相等；缓存一行为相对差，至多 ", options.cache_tolerance)}));
    fmt::print("{}\n", say({text("control: of ", report.controls, " changes to what outputs may depend on, ",
                                 report.noticed, " showed"),
                            text("对照：", report.controls, " 次允许影响输出的改变中，", report.noticed, " 次可见")}));
    if (report.noticed == 0)
      fmt::print(
          "{}\n",
          say({"FAILED: nothing that outputs may depend on changes them, so that they do not depend on the rest proves nothing",
               "未通过：连允许影响输出的改变也不可见，因此其余各项什么也证明不了"}));
    for (const LeakResult& r : report.results)
      if (!r.passed) fmt::print("{}\n", say(explained(r, translator)));
  }

  // What a failure means.
  static Text explained(const LeakResult& r, const Translator& translator) {
    if (r.tried == 0)
      return {"there was nothing to try: the sentences fill all positions that the model has learned",
              "没有可尝试的改变：句子已占满模型学过的全部位置"};
    if (std::isnan(r.largest))
      return {"some scores are not numbers: the weights are broken", "有的得分不是数：权重已损坏"};
    switch (r.kind) {
      case Leak::later_tokens:
        return {
            "an output changes with a target token after it: the decoder's self-attention has no causal mask, and its training loss is too "
            "good to be true",
            "输出随其后的目标词元改变：解码器自注意力缺少因果掩码，训练损失低得不真实"};
      case Leak::padding: {
        const TranslationConfig& c = translator.config();
        if (source_steps(c) > 0)
          return {
              text(
                  "this encoder reads padding on purpose (model.skip_padding is false, as in the book): qkv pads its sentences to ",
                  c.book.num_steps,
                  " tokens always, as in training, so that a sentence has one translation; a longer sentence, or other padding, has "
                  "another"),
              text("该编码器按书中的做法读取填充（model.skip_padding 为 false）：qkv 总是像训练时那样把句子填充到 ",
                   c.book.num_steps, " 个词元，因此译文唯一；更长的句子或不同的填充会改变结果")};
        return {"an output changes with padding: some attention or some state goes beyond the length of the sentence",
                "输出随填充改变：有注意力或状态越过了句子长度"};
      }
      case Leak::batch_mates:
        return {"a sentence's outputs change with the other sentences of its batch: something is computed across rows",
                "句子的输出随同批句子改变：存在跨行计算"};
      case Leak::cache:
        if (translator.config().book.positions)
          return {
              "this model decodes with every token at position 0 on purpose, as the book's prediction does (book.positions is true)",
              "该模型按书中预测的做法解码，每个词元都在位置 0（book.positions 为 true）"};
        return {
            "decoding one token at a time gives other scores than the whole at once: a wrong position, or keys that were not kept or not "
            "moved",
            "逐词元解码与整体计算得分不同：位置有误，或缓存的键没有保留或移动"};
    }
    return {"", ""};
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
