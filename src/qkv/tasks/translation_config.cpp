// The table of settings, and the presets.
#include "qkv/tasks/translation_config.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/suggest.h"

namespace qkv {
namespace {

constexpr int64_t kMostEpochs = 1'000'000'000;  // times batches, it is still a number of steps

void add_data(Settings& s, TranslationDataConfig& d) {
  const char* block = "data";
  s.add(block, "pairs", {"a file of tab-separated sentence pairs, .gz too; en-fr is the built-in corpus", "制表符分隔的句对文件，可为 .gz；en-fr 为内置语料"}, d.pairs, {}, "FILE");
  s.add(block, "source", {"or two files, line by line: the source side", "或两个逐行对应的文件：源语言"}, d.source, {}, "FILE");
  s.add(block, "target", {"and the target side", "目标语言"}, d.target, {}, "FILE");
  s.add(block, "valid_pairs", {"sentence pairs for validation", "验证句对"}, d.valid_pairs, {}, "FILE");
  s.add(block, "valid_source", {"or two files: the source side", "或两个文件：源语言"}, d.valid_source, {}, "FILE");
  s.add(block, "valid_target", {"and the target side", "目标语言"}, d.valid_target, {}, "FILE");
  s.add(block, "valid_share", {"without such files: this share of the pairs, no source sentence on both sides", "没有验证文件时：句对的这一部分，按源句划分"}, d.valid_share, 0, 0.5);
  s.add(block, "limit", {"sentence pairs read, 0 all", "读取的句对数，0 为全部"}, d.limit, 0);
  s.add(block, "reverse", {"translate from the second side into the first", "从第二列译到第一列"}, d.reverse);
  s.add(block, "tokenizer", {"how sentences become tokens", "分词方式"}, d.tokenizer, {"book", "book-en", "spaces", "words", "bpe", "unigram"});
  s.add(block, "min_count", {"words seen less often are <unk>", "出现次数更少的词记为 <unk>"}, d.min_count, 1);
  s.add(block, "vocabulary", {"subword pieces", "子词个数"}, d.vocabulary, 8, 1'000'000);
  s.add(block, "shared_vocabulary", {"one subword vocabulary for both sides", "两侧共用一个子词表"}, d.shared_vocabulary);
  s.add(block, "lowercase", {"subwords of lower-cased text", "子词前先转小写"}, d.lowercase);
  s.add(block, "max_tokens", {"longer training pairs are left out, 0 none", "忽略更长的训练句对，0 不忽略"}, d.max_tokens, 0);
  s.add(block, "corpus_size", {"built-in corpus: sentence pairs", "内置语料：句对数"}, d.corpus_size, 1);
  s.add(block, "corpus_seed", {"built-in corpus: its seed", "内置语料：种子"}, d.corpus_seed, 0);
}

void add_model(Settings& s, TranslationModelConfig& m) {
  const char* block = "model";
  s.add(block, "kind", {"the architecture", "模型结构"}, m.kind, {"seq2seq"});
  s.add(block, "cell", {"the recurrent cell", "循环单元"}, m.cell, {"gru", "lstm"});
  s.add(block, "attention", {"how the decoder scores the source's states", "解码器的注意力评分函数"}, m.attention,
        {"none", "additive", "dot", "scaled-dot", "bilinear", "cosine"});
  s.add(block, "embed", {"width of the embeddings", "词嵌入宽度"}, m.embed, 1, 65536);
  s.add(block, "hidden", {"width of the states", "隐状态宽度"}, m.hidden, 1, 65536);
  s.add(block, "layers", {"recurrent layers of encoder and decoder", "编码器与解码器的循环层数"}, m.layers, 1, 64);
  s.add(block, "bidirectional", {"the encoder reads both ways", "双向编码器"}, m.bidirectional);
  s.add(block, "skip_padding", {"the encoder stops at a sentence's end; the book's runs on through the padding", "编码器在句末停止；书中的编码器会经过填充"}, m.skip_padding);
  s.add(block, "values", {"what attention averages: the encoder's states, or the words alone, which gives sharper alignments", "注意力所平均的值：编码器状态，或仅词嵌入（对齐更清晰）"}, m.values, {"states", "words"});
  s.add(block, "dropout", {"of attention weights and between layers", "注意力权重与层间的 dropout"}, m.dropout, 0, 0.99);
  s.add(block, "embed_dropout", {"of embeddings and before the output layer", "词嵌入与输出层前的 dropout"}, m.embed_dropout, 0, 0.99);
}

void add_training(Settings& s, TranslationTrainingConfig& t) {
  const char* block = "training";
  s.add(block, "epochs", {"passes over the data", "训练轮数"}, t.epochs, 1, kMostEpochs);
  s.add(block, "batch_rows", {"sentence pairs a step", "每步句对数"}, t.batch_rows, 1, 1'000'000);
  s.add(block, "batch_tokens", {"or at most so many padded tokens a step, 0 by rows", "或每步最多的（填充后）词元数，0 按句对"}, t.batch_tokens, 0);
  s.add(block, "by_length", {"batches of sentences of like length", "把长度相近的句子放在一批"}, t.by_length);
  s.add(block, "rate", {"learning rate", "学习率"}, t.rate, 0);
  s.add(block, "schedule", {"how the rate changes", "学习率的变化"}, t.schedule, {"constant", "warmup", "cosine", "step"});
  s.add(block, "warmup", {"steps of rising rate", "预热步数"}, t.warmup, 0);
  s.add(block, "decay_factor", {"schedule step: the rate is multiplied by this", "step：学习率乘以该值"}, t.decay_factor, 0, 1);
  s.add(block, "decay_epochs", {"schedule step: every so many epochs", "step：每隔若干轮"}, t.decay_epochs, 1, kMostEpochs);
  s.add(block, "clip", {"limit of the gradient's norm, 0 none", "梯度范数上限，0 不限"}, t.clip, 0);
  s.add(block, "weight_decay", {"of AdamW", "AdamW 的权重衰减"}, t.weight_decay, 0);
  s.add(block, "loss", {"token: mean over target tokens; book: summed over the batch, divided by num_steps", "token：目标词元的平均；book：整批求和后除以 num_steps"}, t.loss, {"token", "book"});
  s.add(block, "num_steps", {"of the book's loss; sources are padded to as many where the encoder runs through the padding", "书中损失的步数；编码器经过填充时，源句填充到此长度"}, t.num_steps, 1);
  s.add(block, "mask_loss", {"false: padding is a target too", "false：填充也计入损失"}, t.mask_loss);
  s.add(block, "feed_back", {"share of the decoder's inputs that are its own predictions", "解码器输入取自身预测的比例"}, t.feed_back, 0, 1);
  s.add(block, "label_smoothing", {"share of the wanted distribution spread over all tokens", "标签平滑"}, t.label_smoothing, 0, 0.99);
  s.add(block, "patience", {"epochs without a better validation loss before the end, 0 never", "验证损失不再下降多少轮后停止，0 不停"}, t.patience, 0);
  s.add(block, "keep", {"the weights of the model: those with the best validation loss, or the last", "模型的权重：验证损失最低者，或最后的"}, t.keep, {"best", "last"});
  s.add(block, "average_last", {"the model is the mean of the weights after so many last epochs, 0 none", "模型取最后若干轮权重的平均，0 不取"}, t.average_last, 0);
  s.add(block, "seed", {"of weights, order and dropout", "权重、顺序与 dropout 的种子"}, t.seed, 0);
  s.add(block, "checkpoint_seconds", {"least time between two checkpoints", "两次检查点的最小间隔（秒）"}, t.checkpoint_seconds, 0);
  s.add(block, "attention_every", {"epochs between saved attention maps of the pinned sentences, 0 none", "每隔若干轮保存所选句子的注意力，0 不保存"}, t.attention_every, 0);
}

void add_decoding(Settings& s, TranslationDecodingConfig& d) {
  const char* block = "decoding";
  s.add(block, "beam", {"hypotheses kept, 1 greedy", "束宽，1 为贪心"}, d.beam, 1, 1000);
  s.add(block, "length_penalty", {"a: log p / length^a ranks hypotheses", "a：按 log p / 长度^a 排序"}, d.length_penalty, 0, 10);
  s.add(block, "max_length", {"tokens of an output, 0 by the longest training target", "输出的最大词元数，0 取决于训练数据"}, d.max_length, 0);
  s.add(block, "decode_rows", {"sentences decoded at once", "同时解码的句子数"}, d.batch_rows, 1, 100000);
}

// The English edition: 512 pairs, larger layers, 30 epochs, the mean over tokens. Its section 11.4 forgets to mask the loss; this does not.
TranslationConfig english_book(const std::string& name) {
  TranslationConfig c;
  c.preset = name;
  c.data.tokenizer = "book-en";
  c.model.layers = 2;
  c.model.skip_padding = false;
  c.model.dropout = 0.2;
  c.training.epochs = 30;
  c.training.batch_rows = 128;
  c.training.rate = 0.005;
  c.training.num_steps = 9;
  c.training.keep = "last";
  c.decoding.max_length = 9;
  return c;
}

TranslationConfig book(const std::string& name) {
  TranslationConfig c;
  c.preset = name;
  c.data.tokenizer = "book";
  c.data.limit = 600;
  c.model.embed = c.model.hidden = 32;
  c.model.layers = 2;
  c.model.skip_padding = false;
  c.training.rate = 0.005;
  c.training.loss = "book";
  c.decoding.max_length = 10;
  return c;
}

}  // namespace

Settings TranslationConfig::settings() {
  Settings s;
  add_data(s, data), add_model(s, model), add_training(s, training), add_decoding(s, decoding);
  return s;
}

void TranslationConfig::check() const {
  const auto& d = data;
  const auto need = [](bool ok, const auto&... parts) { qkv::check(ok, parts...); };
  need(!d.pairs.empty() || !d.source.empty(), "there is no data: give --data FILE (tab-separated pairs, or en-fr), or --source and --target");
  need(d.pairs.empty() || (d.source.empty() && d.target.empty()), "data.pairs and data.source exclude each other");
  need(d.source.empty() == d.target.empty(), "data.source and data.target come together: source is \"", d.source, "\", target is \"", d.target, "\"");
  need(d.valid_source.empty() == d.valid_target.empty(), "data.valid_source and data.valid_target come together: \"", d.valid_source, "\" and \"", d.valid_target, "\"");
  need(d.valid_pairs.empty() || d.valid_source.empty(), "data.valid_pairs and data.valid_source exclude each other");
  const bool valid_files = !d.valid_pairs.empty() || !d.valid_source.empty();
  const bool book = d.tokenizer == "book" || d.tokenizer == "book-en";
  need(!book || !d.reverse, "data.tokenizer ", d.tokenizer, " translates from the first side into the second: data.reverse is true");
  need(d.tokenizer != "book-en" || (!valid_files && d.valid_share == 0 && d.limit == 0),
       "data.tokenizer book-en reads 641 pairs, 129 of them for validation: data.limit and other validation data do not apply");
  need(d.tokenizer != "book" || (!valid_files && d.valid_share == 0), "data.tokenizer book has no validation data: the book trains on all pairs");
  const bool validates = valid_files || d.valid_share > 0 || d.pairs == "en-fr" || d.tokenizer == "book-en";
  need(training.patience == 0 || validates, "training.patience is ", training.patience, ", but there is no validation data");
  need(training.patience == 0 || training.average_last == 0, "training.patience and training.average_last exclude each other: which epochs are the last is not known before");
  need(training.average_last <= training.epochs, "training.average_last is ", training.average_last, " of ", training.epochs, " epochs");
  need(training.schedule != "warmup" || training.warmup > 0, "training.schedule warmup needs training.warmup above 0");
  need(model.attention != "none" || model.kind == "seq2seq", "model.attention none is for seq2seq");
}

std::vector<std::string> translation_presets() { return {"d2l-seq2seq", "d2l-bahdanau", "d2l-en-seq2seq", "d2l-en-bahdanau", "bahdanau"}; }

bool is_book_preset(const std::string& name) { return name.starts_with("d2l-"); }

TranslationConfig translation_preset(const std::string& name) {
  if (name == "d2l-seq2seq") {
    TranslationConfig c = book(name);
    c.model.attention = "none";
    c.training.epochs = 300;
    return c;
  }
  if (name == "d2l-bahdanau") {
    TranslationConfig c = book(name);
    c.training.epochs = 250;
    return c;
  }
  if (name == "d2l-en-bahdanau") return english_book(name);
  if (name == "d2l-en-seq2seq") {
    TranslationConfig c = english_book(name);
    c.model.attention = "none";
    return c;
  }
  if (name == "bahdanau") {
    TranslationConfig c;
    c.preset = name;
    c.data.pairs = "en-fr";
    c.data.tokenizer = "spaces";
    c.data.min_count = 1;
    c.data.corpus_size = 60000;
    c.model.embed = c.model.hidden = 128;
    c.model.bidirectional = true;
    c.model.values = "words";
    c.model.dropout = 0;
    c.model.embed_dropout = 0.2;
    c.training.epochs = 8;
    c.training.rate = 0.004;
    c.training.schedule = "cosine";
    c.training.batch_rows = 64;
    c.training.by_length = true;
    return c;
  }
  const auto known = translation_presets();
  const std::string near = nearest_word(name, known);
  std::string list;
  for (const auto& k : known) list += (list.empty() ? "" : ", ") + k;
  throw Error(text("unknown preset \"", name, "\": expected one of ", list), near.empty() ? "" : text("did you mean \"", near, "\"?"));
}

}  // namespace qkv
