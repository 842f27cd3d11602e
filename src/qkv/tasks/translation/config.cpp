// The table of settings, and the presets.
#include "qkv/tasks/translation/config.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/suggest.h"
#include "qkv/data/subwords.h"

namespace qkv {
namespace {

void add_model(Settings& s, TranslationModelConfig& m) {
  const char* block = "model";
  s.add(block, "kind", {"the architecture", "模型结构"}, m.kind);
  s.add(block, "attention", {"how queries score keys; auto: additive for seq2seq, scaled-dot for transformer", "注意力评分函数；auto：seq2seq 用 additive，transformer 用 scaled-dot"}, m.attention, "auto",
        {ScorerKind::none, ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear, ScorerKind::cosine, ScorerKind::gaussian});
  s.add(block, "hidden", {"width of the states", "隐状态宽度"}, m.hidden, 1, 65536);
  s.add(block, "layers", {"layers of encoder and decoder", "编码器与解码器的层数"}, m.layers, 1, 64);
  s.add(block, "dropout", {"seq2seq: of attention weights and between layers; transformer: of embeddings, of what a sublayer adds, and of attention weights unless attention_dropout is set", "seq2seq：注意力权重与层间；transformer：词嵌入、子层的输出，以及注意力权重（除非设置 attention_dropout）"}, m.dropout, 0, 0.99);
  s.add(block, "cell", {"seq2seq: the recurrent cell", "seq2seq：循环单元"}, m.cell, {CellKind::gru, CellKind::lstm});
  s.add(block, "embed", {"seq2seq: width of the embeddings", "seq2seq：词嵌入宽度"}, m.embed, 1, 65536);
  s.add(block, "bidirectional", {"seq2seq: the encoder reads both ways", "seq2seq：双向编码器"}, m.bidirectional);
  s.add(block, "skip_padding", {"seq2seq: the encoder stops at a sentence's end; the book's runs on through the padding", "seq2seq：编码器在句末停止；书中的编码器会经过填充"}, m.skip_padding);
  s.add(block, "values", {"seq2seq: what attention averages: the encoder's states, or the words alone, which gives sharper alignments", "seq2seq：注意力所平均的值：编码器状态，或仅词嵌入（对齐更清晰）"}, m.values);
  s.add(block, "embed_dropout", {"seq2seq: of embeddings and before the output layer", "seq2seq：词嵌入与输出层前的 dropout"}, m.embed_dropout, 0, 0.99);
  s.add(block, "heads", {"transformer: heads of every attention; they divide hidden", "transformer：注意力头数，须整除 hidden"}, m.heads, 1, 1024);
  s.add(block, "key_heads", {"transformer: heads of keys and values, shared by several query heads; 0 as many as heads", "transformer：键和值的头数，由多个查询头共用；0 与 heads 相同"}, m.key_heads, 0, 1024);
  s.add(block, "ffn", {"transformer: hidden units of the feed-forward network", "transformer：前馈网络的隐藏单元数"}, m.ffn, 1, 1'000'000);
  s.add(block, "decoder_layers", {"transformer: layers of the decoder, 0 as many as the encoder's", "transformer：解码器层数，0 与编码器相同"}, m.decoder_layers, 0, 64);
  s.add(block, "norm", {"transformer: layer norm after the residual sum, or before each sublayer", "transformer：层规范化在残差之后（post）或子层之前（pre）"}, m.norm);
  s.add(block, "activation", {"transformer: of the feed-forward network", "transformer：前馈网络的激活函数"}, m.activation, {Activation::relu, Activation::gelu});
  s.add(block, "positions", {"transformer: how a token knows its place", "transformer：位置编码"}, m.positions);
  s.add(block, "max_positions", {"transformer: rows of a learned table of positions", "transformer：可学习位置表的行数"}, m.max_positions, 1, 10'000'000);
  s.add(block, "max_distance", {"transformer: distances of relative positions; what is farther counts as that far", "transformer：相对位置的最大距离"}, m.max_distance, 0, 1'000'000);
  s.add(block, "attention_dropout", {"transformer: of attention weights, below 0 as dropout", "transformer：注意力权重的 dropout，负数与 dropout 相同"}, m.attention_dropout, -1, 0.99);
  s.add(block, "bias", {"transformer: the projections of attention have biases", "transformer：注意力投影带偏置"}, m.bias);
  s.add(block, "tied", {"transformer: one matrix for both embeddings and the output layer; needs shared_vocabulary", "transformer：两个词嵌入与输出层共用一个矩阵；需要 shared_vocabulary"}, m.tied);
  s.add(block, "init", {"transformer: scaled: Xavier-uniform layers, embeddings as large as positions; book: embeddings N(0, 1); pytorch: its layers' defaults and N(0, 1)", "transformer：scaled：Xavier 初始化，词嵌入与位置编码同量级；book：词嵌入 N(0, 1)；pytorch：其默认值与 N(0, 1)"}, m.init);
  s.add(block, "recompute", {"transformer: training keeps only the inputs of the sublayers and computes the rest twice: less memory, a third more time", "transformer：训练时只保留各子层的输入，其余重新计算：省内存，约慢三分之一"}, m.recompute);
}

// The English edition: 512 pairs, larger layers, 30 epochs, the mean over tokens. Its section 11.4 forgets to mask the loss; this does not.
TranslationConfig english_book(const std::string& name) {
  TranslationConfig c;
  c.preset = name;
  c.data.tokenizer = TokenizerKind::book_en;
  c.model.layers = 2;
  c.model.skip_padding = false;
  c.model.dropout = 0.2;
  c.training.epochs = 30;
  c.training.batch_rows = 128;
  c.training.rate = 0.005;
  c.book.num_steps = 9;
  c.training.keep = KeptWeights::last;
  c.decoding.max_length = 9;
  return c;
}

TranslationConfig chinese_book(const std::string& name) {
  TranslationConfig c;
  c.preset = name;
  c.data.tokenizer = TokenizerKind::book;
  c.data.limit = 600;
  c.model.embed = c.model.hidden = 32;
  c.model.layers = 2;
  c.model.skip_padding = false;
  c.training.rate = 0.005;
  c.book.loss = LossUnit::book;
  c.decoding.max_length = 10;
  return c;
}

struct TransformerSizes {
  int64_t hidden, layers, heads, ffn;
};

void make_transformer(TranslationConfig& c, const TransformerSizes& sizes) {
  const double dropout = c.model.dropout;
  c.model = {};
  c.model.kind = ModelKind::transformer;
  c.model.hidden = sizes.hidden;
  c.model.layers = sizes.layers;
  c.model.heads = sizes.heads;
  c.model.ffn = sizes.ffn;
  c.model.dropout = dropout;
}

// For the built-in corpus: whole words, minutes.
TranslationConfig built_in_transformer() {
  TranslationConfig c;
  c.preset = "transformer";
  c.data.pairs = "en-fr";
  c.data.tokenizer = TokenizerKind::spaces;
  c.data.min_count = 1;
  c.data.corpus_size = 60000;
  make_transformer(c, {.hidden = 64, .layers = 2, .heads = 4, .ffn = 256});
  c.training.epochs = 8;
  c.training.rate = 0.003;
  c.training.schedule = ScheduleKind::cosine;
  c.training.warmup = 400;
  c.training.by_length = true;
  c.decoding.beam = 1;
  return c;
}

// For corpora of tens of thousands of sentences and more: shared subwords, label smoothing, warm-up, token budgets, averaged weights.
TranslationConfig transformer_at_size(const std::string& name) {
  const bool tiny = name == "transformer-tiny";
  TranslationConfig c;
  c.preset = name;
  c.data.tokenizer = TokenizerKind::bpe;
  c.data.vocabulary = tiny ? 8000 : 16000;
  c.data.shared_vocabulary = true;
  c.data.max_tokens = 200;
  c.model.dropout = tiny ? 0.3 : 0.1;
  make_transformer(c, tiny ? TransformerSizes{.hidden = 128, .layers = 4, .heads = 4, .ffn = 256}
                           : TransformerSizes{.hidden = 512, .layers = 6, .heads = 8, .ffn = 2048});
  c.model.tied = true;
  c.model.bias = true;
  c.model.attention_dropout = 0.1;
  c.training.epochs = tiny ? 40 : 20;
  c.training.batch_tokens = 4096;
  c.training.by_length = true;
  c.training.rate = tiny ? 0.005 : 0.0007;
  c.training.schedule = ScheduleKind::warmup;
  c.training.warmup = tiny ? 2000 : 4000;
  c.training.beta2 = 0.98;
  c.training.label_smoothing = 0.1;
  c.training.average_last = tiny ? 0.125 : 0.25;
  c.training.checkpoint_seconds = 60;
  c.decoding.beam = 5;
  c.decoding.length_penalty = 1;
  c.decoding.max_length = 200;
  return c;
}

}  // namespace

Settings TranslationConfig::settings() {
  Settings s;
  s.add_block("data", data);
  add_model(s, model);
  s.add_block("training", training);
  s.add_block("book", book);
  s.add_block("decoding", decoding);
  s.accept("model.book_positions", "book.positions");
  for (const char* key : {"loss", "num_steps", "mask_loss", "feed_back"}) s.accept(text("training.", key), text("book.", key));
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
  const bool book = d.tokenizer == TokenizerKind::book || d.tokenizer == TokenizerKind::book_en;
  need(!book || !d.reverse, "data.tokenizer ", d.tokenizer, " translates from the first side into the second: data.reverse is true");
  need(d.tokenizer != TokenizerKind::book_en || (!valid_files && d.valid_share == 0 && d.limit == 0),
       "data.tokenizer book-en reads 641 pairs, 129 of them for validation: data.limit and other validation data do not apply");
  need(d.tokenizer != TokenizerKind::book || (!valid_files && d.valid_share == 0), "data.tokenizer book has no validation data: the book trains on all pairs");
  need(!d.built_in() || (!valid_files && d.valid_share == 0),
       "data.pairs en-fr has validation data of its own: data.valid_pairs, data.valid_source and data.valid_share do not apply");
  const bool subwords = d.has_subwords();
  need(!d.shared_vocabulary || subwords, "data.shared_vocabulary needs data.tokenizer bpe or unigram, got ", d.tokenizer);
  const bool validates = valid_files || d.valid_share > 0 || d.built_in() || d.tokenizer == TokenizerKind::book_en;
  training.check(validates);
  check_model();
}

// Settings of one kind of model that were given to another would be passed over in silence: they are refused instead.
void TranslationConfig::check_model() const {
  const TranslationModelConfig& m = model;
  const TranslationModelConfig unset;
  const auto only = [&](bool given, const char* name, const char* kind) {
    qkv::check(!given, "model.", name, " is a setting of ", kind, ", but model.kind is ", m.kind);
  };
  if (m.kind == ModelKind::transformer) {
    only(m.cell != unset.cell, "cell", "seq2seq");
    only(m.embed != unset.embed, "embed", "seq2seq");
    only(m.bidirectional, "bidirectional", "seq2seq");
    only(!m.skip_padding, "skip_padding", "seq2seq");
    only(m.values != unset.values, "values", "seq2seq");
    only(m.embed_dropout != 0, "embed_dropout", "seq2seq");
    only(m.attention == ScorerKind::none, "attention none", "seq2seq");
    qkv::check(m.hidden % m.heads == 0, "model.hidden ", m.hidden, " is not divisible by model.heads ", m.heads);
    const int64_t key_heads = m.key_heads > 0 ? m.key_heads : m.heads;
    qkv::check(m.heads % key_heads == 0, "model.heads ", m.heads, " is no multiple of model.key_heads ", key_heads);
    qkv::check(m.positions != PositionKind::rotary || m.hidden / m.heads % 2 == 0, "model.positions rotary turns pairs: model.hidden ", m.hidden, " over model.heads ",
               m.heads, " gives an odd width of a head");
    qkv::check(!m.tied || data.shared_vocabulary, "model.tied needs one vocabulary for both sides: data.shared_vocabulary is false");
  } else {
    only(m.heads != unset.heads, "heads", "transformer");
    only(m.key_heads != 0, "key_heads", "transformer");
    only(m.ffn != unset.ffn, "ffn", "transformer");
    only(m.decoder_layers != 0, "decoder_layers", "transformer");
    only(m.norm != unset.norm, "norm", "transformer");
    only(m.activation != unset.activation, "activation", "transformer");
    only(m.positions != unset.positions, "positions", "transformer");
    only(m.attention_dropout != unset.attention_dropout, "attention_dropout", "transformer");
    only(m.bias, "bias", "transformer");
    only(m.recompute, "recompute", "transformer");
    only(book.positions, "book_positions", "transformer");
    only(m.tied, "tied", "transformer");
    only(m.init != unset.init, "init", "transformer");
    only(m.max_positions != unset.max_positions, "max_positions", "transformer");
    only(m.max_distance != unset.max_distance, "max_distance", "transformer");
    only(m.attention == ScorerKind::gaussian, "attention gaussian", "transformer");
  }
}

TranslationConfig read_run_config(const std::string& path) {
  TranslationConfig config, before;
  config.settings().read(path);
  if (!config.data.has_subwords()) return config;
  before.data.normalize = Normalization::none;  // unless the file says otherwise
  before.settings().read(path);
  return before;
}

std::vector<std::string> translation_presets() {
  return {"d2l-seq2seq", "d2l-bahdanau", "d2l-transformer", "d2l-en-seq2seq", "d2l-en-bahdanau", "d2l-en-transformer",
          "bahdanau", "transformer", "transformer-tiny", "transformer-base"};
}

bool is_book_preset(const std::string& name) { return name.starts_with("d2l-"); }

TranslationConfig translation_preset(const std::string& name) {
  if (name == "d2l-seq2seq") {
    TranslationConfig c = chinese_book(name);
    c.model.attention = ScorerKind::none;
    c.training.epochs = 300;
    return c;
  }
  if (name == "d2l-bahdanau") {
    TranslationConfig c = chinese_book(name);
    c.training.epochs = 250;
    return c;
  }
  if (name == "d2l-en-bahdanau") return english_book(name);
  if (name == "d2l-en-seq2seq") {
    TranslationConfig c = english_book(name);
    c.model.attention = ScorerKind::none;
    return c;
  }
  if (name == "bahdanau") {
    TranslationConfig c;
    c.preset = name;
    c.data.pairs = "en-fr";
    c.data.tokenizer = TokenizerKind::spaces;
    c.data.min_count = 1;
    c.data.corpus_size = 60000;
    c.model.embed = c.model.hidden = 128;
    c.model.bidirectional = true;
    c.model.values = SourceValues::words;
    c.model.dropout = 0;
    c.model.embed_dropout = 0.2;
    c.training.epochs = 8;
    c.training.rate = 0.004;
    c.training.schedule = ScheduleKind::cosine;
    c.training.batch_rows = 64;
    c.training.by_length = true;
    return c;
  }
  if (name == "d2l-transformer") {
    TranslationConfig c = chinese_book(name);
    make_transformer(c, {.hidden = 32, .layers = 2, .heads = 4, .ffn = 64});
    c.model.init = TransformerOptions::Init::book;
    c.training.epochs = 200;
    c.training.average_last = 0.1;  // the book's is 0: docs/decisions/0006-mean-of-last-weights.md
    return c;
  }
  if (name == "d2l-en-transformer") {
    TranslationConfig c = english_book(name);
    make_transformer(c, {.hidden = 256, .layers = 2, .heads = 4, .ffn = 64});
    c.model.init = TransformerOptions::Init::pytorch;
    c.training.rate = 0.001;
    return c;
  }
  if (name == "transformer") return built_in_transformer();
  if (name == "transformer-tiny" || name == "transformer-base") return transformer_at_size(name);
  const auto known = translation_presets();
  throw Error(text("unknown preset \"", name, "\": expected one of ", listed(known)), did_you_mean(name, known));
}

}  // namespace qkv
