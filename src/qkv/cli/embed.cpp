// qkv embed: one vector for every text, and the cosines between them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "qkv/cli/command.h"
#include "qkv/cli/cut_texts.h"
#include "qkv/cli/text_input.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/io/npy.h"
#include "qkv/io/npz.h"
#include "qkv/plot/save.h"
#include "qkv/report/attention_maps.h"
#include "qkv/report/text_vectors.h"

namespace qkv::cli {
namespace {

class Embed : public Command {
 public:
  std::string name() const override { return "embed"; }
  Text summary() const override { return tr("turns texts into vectors with a pretrained encoder, and compares them"); }
  std::string example() const override {
    return "qkv embed --model all-MiniLM-L6-v2 lines.txt -o vectors.npy\n"
           "  qkv embed --model all-MiniLM-L6-v2 --cosine --text 'a cat sleeps' --text 'the kitten naps'";
  }

  void bind(Options& o) override {
    o.option("--model DIR", tr("a pretrained folder of an encoder: BERT, MiniLM, RoBERTa"), model_);
    o.option("--text TEXT", tr("a text; may be repeated"), texts_);
    o.option("--pooling HOW",
             tr("the mean of the tokens' states, the state of the first token, or the largest element of every column "
                "(default: what the folder says, else mean)"),
             pooling_);
    o.flag("--normalize", tr("every vector to length 1 (default: what the folder says)"), normalize_);
    o.option("--most N", tr("tokens read of a text; the rest is cut off and reported (default: what the folder says)"),
             most_, 1, 1'000'000);
    o.flag("--cosine", tr("cosines between all texts instead of the vectors"), cosine_);
    o.flag("--states",
           tr("the state of every token of every text: arrays states.1, tokens.1, states.2, ... of an .npz file"),
           states_);
    o.option("--batch N", tr("tokens computed at once (default 2048)"), batch_tokens_, 1, 10'000'000);
    o.option("-o,--output FILE",
             tr("write a matrix, one row per text, to .npy; cosines also as a picture to .svg, .png or .txt"), output_);
    o.flag("--json", tr("print one JSON object per text"), json_);
    o.positionals("FILE", tr("files of texts, one per line (default, or -: standard input)"), files_);
  }

  int run(const Global& global) override {
    if (model_.empty()) throw UsageError(tr("the option --model DIR is missing"));
    if (output_ && json_) throw UsageError(tr("--output and --json exclude each other"));
    if (states_ && (cosine_ || pooling_ || normalize_ || !output_ || !output_->ends_with(".npz")))
      throw UsageError(tr("--states writes an .npz file (--output) and excludes --cosine, --pooling and --normalize"));
    const bool numbers = output_ && output_->ends_with(".npy");
    if (output_ && !numbers && !states_) {
      if (!cosine_)
        throw UsageError(tr("--output: expected a path that ends in .npy, got \"{output}\"", "output"_a = *output_));
      check_figure_path(*output_);
    }
    if (output_) refuse_overwriting(*output_, files_);
    const SentenceEncoder encoder(model_);
    const std::vector<std::string> texts = all_texts();
    if (states_) return write_states(encoder, texts, global);
    const TextVectors found = encoder.embed(texts, options_of(encoder));
    note_cut(found.left_out, global);
    const Tensor result = cosine_ ? cosines(found.rows) : found.rows;
    if (numbers) {
      write_npy(*output_, result);
      global.say(tr("{file}: {rows} x {columns}", "file"_a = *output_, "rows"_a = result.size(0),
                    "columns"_a = result.size(1)));
    } else if (output_) {
      save(report::cosine_figure(texts, result), *output_, global.language);
      global.say(verbatim(*output_));
    } else if (json_ || !cosine_) {
      for (size_t i = 0; i < texts.size(); ++i)
        fmt::print("{}\n", report::to_json(texts[i], found, result, static_cast<int64_t>(i), cosine_));
    } else {
      fmt::print("{}", report::cosine_table(texts, result));
    }
    return 0;
  }

 private:
  int write_states(const SentenceEncoder& encoder, const std::vector<std::string>& texts, const Global& global) const {
    const EmbedOptions options = options_of(encoder);
    std::map<std::string, Array> arrays;
    std::vector<int64_t> left_out;
    int64_t number = 0;
    for (const std::string& text : texts) {
      const EncodedText read = encoder.read(text, options.most);
      require(!read.tokens.empty(), "text {number} has no token", "number"_a = number + 1);
      const std::string n = std::to_string(++number);
      const Tensor states = encoder.states(read);
      arrays.emplace("states." + n, Array(states.viewed({states.size(1), states.size(2)})));
      arrays.emplace("tokens." + n, report::lines_array(encoder.pieces(read)));
      left_out.push_back(static_cast<int64_t>(read.left_out));
    }
    note_cut(left_out, global);
    write_npz(*output_, arrays);
    global.say(verbatim(*output_));
    return 0;
  }

  EmbedOptions options_of(const SentenceEncoder& encoder) const {
    EmbedOptions out = encoder.defaults();
    if (pooling_) out.pooling = *pooling_;
    out.normalize = out.normalize || normalize_;
    if (most_) {
      require(*most_ <= encoder.longest(), "--most {most}: the model reads {longest} tokens", "most"_a = *most_,
              "longest"_a = encoder.longest());
      out.most = *most_;
    }
    if (batch_tokens_) out.batch_tokens = *batch_tokens_;
    return out;
  }

  std::vector<std::string> all_texts() const {
    std::vector<std::string> out = texts_;
    for (const std::string& file : texts_.empty() && files_.empty() ? std::vector<std::string>{"-"} : files_)
      for (std::string& line : read_text_lines(file)) out.push_back(std::move(line));
    for (const std::string& text : texts_) check_utf8(text, tr("the text"));
    return out;
  }

  std::string model_;
  std::vector<std::string> texts_, files_;
  std::optional<TextPooling> pooling_;
  std::optional<int64_t> most_, batch_tokens_;
  std::optional<std::string> output_;
  bool normalize_ = false, cosine_ = false, states_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> embed_command() { return std::make_unique<Embed>(); }

}  // namespace qkv::cli
