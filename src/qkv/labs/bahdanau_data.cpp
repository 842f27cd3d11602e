// Lab 10.4: from text to batches of ids, and how vocabularies grow.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"

namespace qkv::labs::bahdanau {
namespace {

std::string row_of(const Ids& ids, int64_t row) {
  const int64_t width = ids.size(1);
  std::string out;
  for (int64_t i = 0; i < width; ++i) out += fmt::format("{:>5}", ids.ptr()[row * width + i]);
  return out;
}

std::vector<std::vector<std::string>> words_of(const std::vector<std::string>& sentences, WordRule rule) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& sentence : sentences) {
    auto& line = lines.emplace_back();
    for (Word& word : split_words(sentence, rule)) line.push_back(std::move(word.text));
  }
  return lines;
}

// A side of the corpus in numbers.
struct SideFacts {
  int64_t tokens = 0, distinct = 0, unknown = 0, longest = 0;
  std::map<int64_t, double> lengths;  // how many sentences have so many words
};

SideFacts facts(const std::vector<std::vector<std::string>>& lines, const Tokenizer& tokenizer) {
  SideFacts out;
  std::unordered_set<std::string_view> seen;
  for (const auto& line : lines) {
    const auto size = static_cast<int64_t>(line.size());
    out.tokens += size, out.longest = std::max(out.longest, size);
    ++out.lengths[size];
    for (const std::string& word : line) {
      seen.insert(word);
      out.unknown += tokenizer.vocabulary()->id(word) == tokenizer.unk();
    }
  }
  out.distinct = static_cast<int64_t>(seen.size());
  return out;
}

// The book's histogram with a bar for every length.
Figure lengths_figure(const SideFacts& source, const SideFacts& target) {
  std::vector<std::string> names;
  NamedValues s{"source", {}}, t{"target", {}};
  const auto count = [](const SideFacts& side, int64_t length) {
    return side.lengths.contains(length) ? side.lengths.at(length) : 0.0;
  };
  for (int64_t n = std::min(source.lengths.begin()->first, target.lengths.begin()->first);
       n <= std::max(source.longest, target.longest); ++n) {
    names.push_back(std::to_string(n));
    s.values.push_back(count(source, n)), t.values.push_back(count(target, n));
  }
  return bars(names, {s, t}, {.label = "# tokens per sequence"}, {.label = "count"});
}

WordRule rule_of(const Page& page) { return page.data().empty() ? WordRule::spaces : WordRule::book; }

}  // namespace

void text_step(Page& page) {
  page.heading({"From text to words", "从文本到词元"});
  page.say(
      {"A corpus is a file of sentence pairs: English, a tab, French. Three rules make words of it: no-break spaces become spaces, "
       "everything becomes lower case, and each of `, . ! ?` gets a space in front. Nothing else is cut, so `i'm` stays one word.",
       "语料是句子对文件：英语、制表符、法语。三条规则把它变成词元：不间断空格变为空格，全部转为小写，`, . ! ?` 之前各加一个空格。此外不再"
       "切分，所以 `i'm` 是一个词元。"});
  const std::string raw = "Go.\tVa\u202f!\nI'm home.\tJe suis chez moi.\nWow!\t\u00c7a alors\u00a0!";
  const std::string prepared = preprocess_nmt(raw);
  page.print(raw + "\n\n" + prepared);
  page.claim(
      prepared == "go .\tva !\ni'm home .\tje suis chez moi .\nwow !\t\u00e7a alors !",
      {"Accents survive, capitals and no-break spaces do not.", "重音符号保留，大写与不间断空格消失。"},
      "\"" + raw.substr(raw.rfind('\t') + 1) + "\" becomes \"" + prepared.substr(prepared.rfind('\t') + 1) + "\"");
  const TranslationRun& run = trained(page, Kind::attention).run;
  if (page.data().empty())
    page.say(
        {"Without a file the lab uses the program's own corpus: sentences of a small grammar with gold word alignments, which are already "
         "in this form (`qkv data en-fr` writes it). `qkv lab bahdanau --data fra.txt` does the book's experiment on the book's file.",
         "没有文件时，本实验使用程序自带的语料：由一部小语法生成、带有标准词对齐的句子，已是这种形式（`qkv data en-fr` 可写出）。`qkv lab "
         "bahdanau --data fra.txt` 则在书中的文件上做书中的实验。"});
  else
    page.say(
        {"The book reads line 0 to line 600 of the file, which makes 601 pairs. English sentences come back with several French ones "
         "there, so no model can reach a loss of 0: the floor is 0.0161 in the book's unit.",
         "书中读取文件的第 0 至 600 行，即 601 对。同一个英语句子常有多个法语译文，所以损失不可能为 0：按书中的单位，下限是 0.0161。"});
  std::string sample;
  for (size_t i = 0; i < 4; ++i)
    sample += fmt::format("{}{}\n    {}", i ? "\n" : "", run.text().train.source[i], run.text().train.target[i]);
  page.print(sample);

  const auto source = words_of(run.text().train.source, rule_of(page)),
             target = words_of(run.text().train.target, rule_of(page));
  const SideFacts s = facts(source, run.tokenizers().source), t = facts(target, run.tokenizers().target);
  const auto pairs = run.training_pairs();
  named_table(
      page, {{"training pairs", "训练句对"}, {"source", "源语言"}, {"target", "目标语言"}},
      {{{"sentences", "句子"}, {grouped(pairs), grouped(pairs)}},
       {{"distinct words", "不同的词"}, {grouped(s.distinct), grouped(t.distinct)}},
       {{"vocabulary, 4 specials included", "词表（含 4 个特殊词元）"},
        {grouped(run.tokenizers().source.size()), grouped(run.tokenizers().target.size())}},
       {{"tokens, `<eos>` included", "词元数（含 `<eos>`）"}, {grouped(s.tokens + pairs), grouped(t.tokens + pairs)}},
       {{"of them `<unk>`", "其中 `<unk>`"}, {grouped(s.unknown), grouped(t.unknown)}},
       {{"longest sentence", "最长的句子"}, {grouped(s.longest), grouped(t.longest)}}});
  page.draw("lengths", lengths_figure(s, t),
            {"How long the sentences are. French is slightly longer on average.", "句子的长度分布。法语略长一些。"});
  if (is_books_data(page))
    page.fact({"It is the book's subset: vocabularies of 184 and 201, 2,541 target tokens per epoch.",
               "这正是书中的子集：词表大小 184 与 201，每轮 2,541 个目标词元。"});
}

void batch_step(Page& page) {
  page.heading({"A small batch", "一个小批量"});
  page.say(
      {"Words become numbers, each sentence gets an `<eos>`, and shorter ones are filled up with `<pad>`. The lengths say where the "
       "padding begins. The decoder reads the target shifted by one place, `<bos>` first: with **teacher forcing** it sees the right word "
       "before it must write the next one.",
       "词变成编号，每句末尾加 `<eos>`，短句用 `<pad>` 补齐；有效长度指出填充从哪里开始。解码器读入的是右移一位、以 `<bos>` 开头的目标句："
       "在**强制教学**下，它写下一个词之前先看到正确的上一个词。"});
  const TranslationRun& run = trained(page, Kind::attention).run;
  const Tokenizers& tokenizers = run.tokenizers();
  // The first sentence, and the first after it of another length.
  const SentencePairs& all = run.text().train;
  std::vector<int64_t> rows = {0};
  for (int64_t i = 1; i < all.size() && rows.size() < 2; ++i)
    if (tokenizers.target.encode(all.target[static_cast<size_t>(i)]).size() >
        tokenizers.target.encode(all.target[0]).size())
      rows.push_back(i);
  const SentencePairs two = select(all, rows);
  const TranslationBatch batch =
      TranslationBatches(encode_pairs(two, tokenizers.source, tokenizers.target), tokenizers.source.pad(),
                         tokenizers.target.pad(), tokenizers.target.bos(), {.rows = 2, .shuffle = false})
          .batch(0, 0);
  std::string out;
  for (int64_t r = 0; r < batch.source.size(0); ++r)
    out += fmt::format("{}source      {}   length {}\ntarget in   {}\ntarget out  {}   length {}\n\n  {}\n  {}",
                       r ? "\n\n" : "", row_of(batch.source, r), batch.source_lens.ptr()[r], row_of(batch.target_in, r),
                       row_of(batch.target_out, r), batch.target_lens.ptr()[r], two.source[static_cast<size_t>(r)],
                       two.target[static_cast<size_t>(r)]);
  page.print(out);
  bool shifted = true;
  const int64_t steps = batch.target_in.size(1);
  for (int64_t r = 0; r < batch.source.size(0); ++r) {
    shifted = shifted && batch.target_in.ptr()[r * steps] == tokenizers.target.bos();
    for (int64_t i = 1; i < steps; ++i)
      shifted = shifted && batch.target_in.ptr()[r * steps + i] == batch.target_out.ptr()[r * steps + i - 1];
  }
  page.claim(shifted, {"The decoder's input is its output one step later.", "解码器的输入就是晚一步的输出。"},
             fmt::format("in all {} places of both rows", steps));
}

void vocabulary_step(Page& page) {
  page.heading(
      {"Exercises 9.5.1 and 9.5.2: more examples, larger vocabularies", "练习 9.5.1、9.5.2：样本越多，词表越大"});
  const bool built_in = page.data().empty();
  const BookCorpus book =
      built_in
          ? BookCorpus{Tokenizer::words({}, WordRule::spaces), Tokenizer::words({}, WordRule::spaces), {}, {}, {}, 0}
          : load_book_zh(page.data(), -1);
  const SentencePairs& text = built_in ? trained(page, Kind::attention).run.text().train : book.sentences;
  const WordRule rule = built_in ? WordRule::spaces : WordRule::book;
  std::vector<double> sizes, source_sizes, target_sizes;
  std::vector<std::vector<std::string>> rows;
  TokenCounts source, target;
  SideFacts source_side, target_side;
  int64_t read = 0;
  const auto add = [&](const std::string& sentence, TokenCounts& counts, SideFacts& side) {
    const auto words = split_words(sentence, rule);
    for (const Word& w : words) counts.add(w.text);
    const auto size = static_cast<int64_t>(words.size());
    ++side.lengths[size], side.longest = std::max(side.longest, size);
  };
  for (int64_t n = built_in ? 25 : 150; read < text.size(); n *= 2) {
    for (n = std::min(n, text.size()); read < n; ++read) {
      add(text.source[static_cast<size_t>(read)], source, source_side);
      add(text.target[static_cast<size_t>(read)], target, target_side);
    }
    const int32_t s = Vocabulary::build(source, 2).size(), t = Vocabulary::build(target, 2).size();
    sizes.push_back(static_cast<double>(n)), source_sizes.push_back(s), target_sizes.push_back(t);
    rows.push_back({grouped(n), grouped(s), grouped(t)});
  }
  page.say(
      {"Words that occur twice or more, counted in the first $n$ pairs. A language has no last word: in real text the vocabulary grows "
       "like a power of $n$ below 1. A grammar has a fixed list of words, and runs into it.",
       "在前 $n$ 对中统计出现两次及以上的词。语言没有“最后一个词”：真实文本的词表按 $n$ 的小于 1 "
       "的幂增长。而一部语法的词是有限的，会触到上限。"});
  page.table({{"pairs", "句对数"}, {"source vocabulary", "源词表"}, {"target vocabulary", "目标词表"}}, rows);
  page.draw(
      "vocabularies",
      curves({{"source", sizes, source_sizes, line_style("bo-")}, {"target", sizes, target_sizes, line_style("ro-")}},
             {.label = "sentence pairs", .scale = AxisScale::log}, {.label = "vocabulary", .scale = AxisScale::log}),
      {"Vocabulary against the number of pairs, both axes logarithmic.", "词表大小与句对数，双对数坐标。"});
  const bool slower = source_sizes.back() / source_sizes[0] < sizes.back() / sizes[0] &&
                      target_sizes.back() / target_sizes[0] < sizes.back() / sizes[0];
  page.claim(slower && std::is_sorted(source_sizes.begin(), source_sizes.end()) &&
                 std::is_sorted(target_sizes.begin(), target_sizes.end()),
             {"Both vocabularies grow with the examples, and more slowly than they do.",
              "两个词表都随样本增长，但比样本增长得慢。"},
             fmt::format("pairs × {:.0f}, source × {:.1f}, target × {:.1f}", sizes.back() / sizes[0],
                         source_sizes.back() / source_sizes[0], target_sizes.back() / target_sizes[0]));
  if (!built_in)
    page.draw("all-lengths", lengths_figure(source_side, target_side),
              {"How long the sentences of the whole file are: most have fewer than 20 words.",
               "整个文件的句子长度分布：大多不到 20 个词。"});
  if (is_books_data(page))
    page.fact({"The whole file has 167,130 pairs and a source vocabulary of 10,012 in the book.",
               "书中整个文件有 167,130 对，源词表大小为 10,012。"},
              fmt::format("here {} and {}", grouped(text.size()), grouped(static_cast<int64_t>(source_sizes.back()))));
  const std::string home = "我在家。";
  page.print(
      fmt::format("{} -> {} word, {} characters", home, split_words(home, WordRule::book).size(), home.size() / 3));
  page.say(
      {"(9.5.2) In Chinese or Japanese no spaces part the words: a sentence would be one token, seen once. Characters or learned subwords "
       "(`--tokenizer bpe`, `unigram`) are the way out, and they leave no unknown words in French either.",
       "（9.5.2）中文和日文不用空格分词：整句会成为一个只出现一次的词元。出路是用字，或用学到的子词（`--tokenizer bpe`、`unigram`），它们在"
       "法语中也不留未知词。"});
}

}  // namespace qkv::labs::bahdanau
