// Opens an encoder's folder, and runs texts through it in batches of like length.
#include "qkv/tasks/encoding/sentence_encoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/softmax.h"
#include "qkv/run/model_file.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/encoding/run.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kStretch = 1 << 14;               // texts encoded at once
constexpr int64_t kTextsPerTask = 16;               // encoded by one thread
constexpr double kNanosecondsPerByte = 100;         // of encoding
constexpr int64_t kMostNumbers = int64_t{1} << 33;  // of a result

// What a run says of its model.
BertConfig config_of_run(const std::string& folder, Architecture& architecture) {
  EncodingConfig config = read_encoding_config(run_config_path(folder, TaskKind::encoding));
  architecture = config.model.architecture;
  config.model.bert.classes = load_encoder_classes(folder);
  return std::move(config.model.bert);
}

EncoderModel model_of_run(const std::string& folder, const BertConfig& config) {
  const SafetensorsFile file(run_weights(folder));
  check_layout(file, layout_of([&] { return make_bert_model(config, Rng(0)); }));
  EncoderModel model = make_bert_model(config, Rng(0));
  read_weights(file, flatten(model));
  return model;
}

// The tokenizer's tokens must be those of the embedding.
void check_tokenizer(const std::string& folder, const PretrainedTokenizer& tokenizer, const BertConfig& config) {
  require(tokenizer.size() <= config.model.words,
          "{folder}: its tokenizer has {tokens} tokens, but its embedding only {rows} rows", "folder"_a = folder,
          "tokens"_a = grouped(static_cast<uint64_t>(tokenizer.size())),
          "rows"_a = grouped(static_cast<uint64_t>(config.model.words)));
  const int32_t pad = tokenizer.special().pad;
  require(pad < 0 || pad == config.pad,
          "{folder}: config.json says that padding is token {pad}, but the tokenizer's {piece} is {found}: are the "
          "tokenizer's files of another model?",
          "folder"_a = folder, "pad"_a = config.pad, "piece"_a = printable(tokenizer.piece(pad)), "found"_a = pad);
}

// Row b of states (B, n, width), of which the first `length` are the text's, as one vector.
void pool(const Tensor& states, int64_t b, int64_t length, TextPooling pooling, float* out) {
  const int64_t n = states.size(1), width = states.size(2);
  const float* rows = states.ptr() + b * n * width;
  if (pooling == TextPooling::cls) {
    std::copy_n(rows, width, out);
    return;
  }
  std::vector<double> sums(static_cast<size_t>(width));
  std::copy_n(rows, width, out);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t c = 0; c < width; ++c) {
      sums[static_cast<size_t>(c)] += rows[i * width + c];
      out[c] = std::max(out[c], rows[i * width + c]);
    }
  if (pooling == TextPooling::max) return;
  for (int64_t c = 0; c < width; ++c)
    out[c] = static_cast<float>(sums[static_cast<size_t>(c)] / static_cast<double>(length));
}

void to_length_one(float* row, int64_t width) {
  double squares = 0;
  for (int64_t c = 0; c < width; ++c) squares += double{row[c]} * row[c];
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (int64_t c = 0; c < width; ++c) row[c] = static_cast<float>(row[c] / length);
}

}  // namespace

SentenceEncoder::SentenceEncoder(const std::string& folder) {
  const bool pretrained = is_pretrained_folder(folder);
  if (pretrained) {
    architecture_ = architecture_of(folder);
    check_task(folder, task_of(architecture_), TaskKind::encoding);
    config_ = read_bert_config(folder, architecture_);
    modules_ = read_sentence_modules(folder);
  } else {
    config_ = config_of_run(folder, architecture_);
  }
  tokenizer_ = open_encoder_tokenizer(folder, architecture_);
  check_tokenizer(folder, *tokenizer_, config_);
  model_ = pretrained ? open_bert_model(folder, architecture_, config_) : model_of_run(folder, config_);
}

EncodedText SentenceEncoder::read(const std::string& text, int64_t most) const {
  const std::string& with = modules_.prompt.empty() ? text : modules_.prompt + text;
  return tokenizer_->encode(modules_.lowercase ? lowercase(with) : with, {.most = static_cast<size_t>(most)});
}

EncodedText SentenceEncoder::read_whole(const std::string& text) const {
  EncodedText out = tokenizer_->encode(text);
  require(!out.tokens.empty(), "the text is empty");
  require(std::ssize(out.tokens) <= longest(), "the text has {tokens} tokens, but the model reads {context} at once",
          "tokens"_a = out.tokens.size(), "context"_a = longest());
  return out;
}

EmbedOptions SentenceEncoder::defaults() const {
  EmbedOptions out{.pooling = modules_.pooling, .normalize = modules_.normalize, .most = longest()};
  if (modules_.most) out.most = std::min(out.most, *modules_.most);
  if (const auto most = static_cast<int64_t>(tokenizer_->most_tokens()); most > 0) out.most = std::min(out.most, most);
  return out;
}

template <class Use>
void SentenceEncoder::in_batches(std::span<const std::string> texts, const EmbedOptions& options, TextVectors& sizes,
                                 const Use& use) const {
  check(options.most >= 1 && options.most <= longest(), "[sentence_encoder] at most ", options.most,
        " tokens, but there are ", longest(), " positions");
  const TapePause pause;
  const auto count = std::ssize(texts);
  sizes.tokens.resize(texts.size());
  sizes.left_out.resize(texts.size());
  std::vector<EncodedText> read;
  for (int64_t first = 0; first < count; first += kStretch) {
    const auto some = texts.subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(kStretch, count - first)));
    read.assign(some.size(), {});
    size_t bytes = 0;
    for (const std::string& text : some) bytes += text.size();
    parallel_ranges(std::ssize(some), kTextsPerTask, static_cast<double>(bytes) * kNanosecondsPerByte,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i)
                        read[static_cast<size_t>(i)] = this->read(some[static_cast<size_t>(i)], options.most);
                    });
    std::vector<int64_t> order(some.size());
    std::iota(order.begin(), order.end(), 0);
    const auto length = [&](int64_t i) { return std::ssize(read[static_cast<size_t>(i)].tokens); };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });
    for (const int64_t i : order) {
      require(length(i) > 0, "text {number} has no token", "number"_a = first + i + 1);
      sizes.tokens[static_cast<size_t>(first + i)] = length(i);
      sizes.left_out[static_cast<size_t>(first + i)] = static_cast<int64_t>(read[static_cast<size_t>(i)].left_out);
    }
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin + 1;
      while (end < order.size() && (static_cast<int64_t>(end - begin) + 1) * length(order[end]) <= options.batch_tokens)
        ++end;
      const std::span<const int64_t> rows(order.data() + begin, end - begin);
      const int64_t n = length(rows.back()), B = std::ssize(rows);
      std::vector<int32_t> ids(static_cast<size_t>(B * n), static_cast<int32_t>(config_.pad)), types(ids.size()), lens;
      for (int64_t b = 0; b < B; ++b) {
        const EncodedText& one = read[static_cast<size_t>(rows[static_cast<size_t>(b)])];
        for (size_t i = 0; i < one.tokens.size(); ++i) {
          ids[static_cast<size_t>(b * n) + i] = one.tokens[i].id;
          types[static_cast<size_t>(b * n) + i] = one.tokens[i].text;
        }
        lens.push_back(static_cast<int32_t>(one.tokens.size()));
      }
      const bool padded = length(rows.front()) < n;
      const Tensor states =
          model_.encoder(Ids({B, n}, ids), Ids({B, n}, types), padded ? Ids({B}, lens) : Ids(), Run{});
      for (int64_t b = 0; b < B; ++b)
        use(first + rows[static_cast<size_t>(b)], states, b, lens[static_cast<size_t>(b)]);
      begin = end;
    }
  }
}

TextVectors SentenceEncoder::embed(std::span<const std::string> texts, const EmbedOptions& options) const {
  const int64_t width = config_.model.blocks.hidden, count = std::ssize(texts);
  require(count <= kMostNumbers / width, "{texts} texts of {width} numbers each are more than {most} numbers",
          "texts"_a = grouped(static_cast<uint64_t>(count)), "width"_a = width,
          "most"_a = grouped(static_cast<uint64_t>(kMostNumbers)));
  TextVectors out{.rows = Tensor::empty({count, width}), .tokens = {}, .left_out = {}};
  in_batches(texts, options, out, [&](int64_t text, const Tensor& states, int64_t b, int64_t length) {
    float* row = out.rows.mutable_ptr() + text * width;
    pool(states, b, length, options.pooling, row);
    if (options.normalize) to_length_one(row, width);
  });
  return out;
}

Tensor SentenceEncoder::classify(std::span<const std::string> texts, const EmbedOptions& options,
                                 TextVectors& sizes) const {
  check(model_.classes.has_value(), "[sentence_encoder] the model has no classes");
  const auto classes = std::ssize(config_.classes);
  Tensor out = Tensor::empty({std::ssize(texts), classes});
  in_batches(texts, options, sizes, [&](int64_t text, const Tensor& states, int64_t b, int64_t) {
    const int64_t n = states.size(1), width = states.size(2);
    const Tensor scores = (*model_.classes)(states.part(b * n * width, {1, n, width}), Run{});
    const Tensor found = config_.outputs == ClassOutputs::one ? softmax(scores) : sigmoid(scores);
    std::copy_n(found.ptr(), classes, out.mutable_ptr() + text * classes);
  });
  return out;
}

Tensor SentenceEncoder::states(const EncodedText& text, const Run& run) const {
  const int64_t n = std::ssize(text.tokens);
  return model_.encoder(Ids({1, n}, text.ids()), Ids({1, n}, text.types()), {}, run);
}

StackAttention SentenceEncoder::attention(const EncodedText& text, const AttentionEdits& edits,
                                          const MapsWanted& wanted) const {
  return stack_attention(
      model_.encoder.stack, "encoder", [&](const Run& run) { states(text, run); }, edits, wanted);
}

std::vector<std::string> SentenceEncoder::pieces(const EncodedText& text) const {
  std::vector<std::string> out;
  for (const EncodedToken& token : text.tokens) out.push_back(tokenizer_->piece(token.id));
  return out;
}

std::vector<std::string> SentenceEncoder::labels(const EncodedText& text) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    const EncodedToken& token = text.tokens[i];
    const bool goes_on = token.word >= 0 && i > 0 && text.tokens[i - 1].word == token.word;
    const std::string shown = printable(tokenizer_->shown(token.id));
    out.push_back(goes_on ? "·" + shown : shown);
  }
  return out;
}

}  // namespace qkv
