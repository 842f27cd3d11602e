// qkv inspect for translation: the attention of a sentence and its translation.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/inspect.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/core/counts.h"
#include "qkv/data/corpus.h"
#include "qkv/data/text.h"
#include "qkv/eval/alignment.h"
#include "qkv/report/attention_words.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {
namespace {

const Text kNoWords =
    tr("too many heads and words to label: the axes show positions; --layer and --head draw fewer maps, with words");

// The sentence and translation that are shown, and their origin.
struct Looked : report::SeenSentence {
  std::vector<int32_t> source_ids, target_ids;
  bool cut_off = false;  // the model's translation stops before its end
  size_t lines = 0;      // of the file of pairs
};

class InspectTranslation {
 public:
  explicit InspectTranslation(const InspectOptions& options) : o_(options) {}

  int run(const Global& global) const {
    const Translator translator(o_.model);
    note_unfinished(o_.model, global);
    const Looked seen = look(translator);
    if (seen.cut_off)
      global.note(tr("the translation was cut off after {tokens}", "tokens"_a = token_count(seen.target_ids.size())));
    note_unknown_words(translator, seen, global);
    require(seen.attention.defined(), "{model}: this model has no attention (model.attention is none)",
            "model"_a = o_.model);
    const bool given = o_.target || !o_.pairs.empty();
    if (o_.writes_explorer() && (translator.model().transformer() || !asks_for_heads()))
      return write_explorer(o_, seen.source, given ? std::optional(seen.target) : std::nullopt, global);
    if (const Transformer* model = translator.model().transformer())
      return show(global, seen, pair_of(translator, *model, seen), gold_boxes(translator, seen));
    require(!asks_for_heads(),
            "{model}: this model has a single attention map; --kind, --layer, --head, --values, --rollout, --steps and "
            "--words are for Transformers",
            "model"_a = o_.model);
    if (o_.json) return print(report::to_json(seen));
    if (o_.writes(".npz")) return write_arrays(o_, seen.target, report::to_arrays(seen), global);
    return draw(global, seen, {attention_figure(seen, o_.choice.colours, gold_boxes(translator, seen))});
  }

 private:
  bool asks_for_heads() const {
    return o_.choice.kind != "all" || o_.choice.layer || o_.choice.head || o_.choice.values || o_.choice.rollout ||
           o_.steps || o_.by_word;
  }

  Looked look(const Translator& translator) const {
    Looked out;
    std::string source = o_.sentence(), target = o_.target.value_or("");
    if (!o_.pairs.empty()) {
      const SentencePairs all = read_pairs(o_.pairs);
      require(*o_.line <= all.size(), "{pairs}: has {lines}, but --line is {line}", "pairs"_a = o_.pairs,
              "lines"_a = line_count(static_cast<uint64_t>(all.size())), "line"_a = *o_.line);
      out.lines = static_cast<size_t>(all.size());
      source = all.source[static_cast<size_t>(*o_.line - 1)];
      target = all.target[static_cast<size_t>(*o_.line - 1)];
    }
    check_utf8(source, tr("the sentence"));
    check_utf8(target, tr("the translation"));
    const Tokenizers& tokenizers = translator.tokenizers();
    require(!tokenizers.source.encode(source).empty(), "the sentence is empty");
    const bool given = o_.target || !o_.pairs.empty();
    require(!given || !tokenizers.target.encode(target).empty(), "the translation is empty");
    out.source = source;
    std::vector<int32_t>&source_ids = out.source_ids, &target_ids = out.target_ids;
    if (given) {
      ForceOptions options{.source_name = tr("the sentence"), .target_name = tr("the translation"), .first_line = 0};
      if (!o_.pairs.empty()) {
        options.source_name = options.target_name = o_.pairs;
        options.first_line = static_cast<size_t>(*o_.line);
      }
      const auto forced = translator.force({{source}, {target}}, options);
      source_ids = forced[0].source;
      target_ids = forced[0].target;
      out.target = target;
      out.attention = forced[0].forced.attention;
      out.log_probability = forced[0].forced.log_probability();
    } else {
      TranslateOptions options = translator.defaults();
      options.keep_attention = true;
      options.name = tr("the sentence");
      options.first_line = 0;
      if (o_.beam) options.beam = *o_.beam;
      const std::vector<std::string> one = {source};
      const auto translation = translator.translate(one, options)[0];
      const Hypothesis& best = translation.hypotheses[0];
      source_ids = translation.source;
      target_ids = best.tokens;
      if (best.ended) target_ids.push_back(tokenizers.target.eos());
      out.cut_off = !best.ended;
      out.target = translator.text(best, translation.writing);
      out.attention = best.attention;
      out.log_probability = best.log_probability;
    }
    out.source_tokens = tokenizers.source.tokens(source_ids);
    out.target_tokens = tokenizers.target.tokens(target_ids);
    return out;
  }

  // In the sentence, and in a translation that was given: the model's own has none.
  void note_unknown_words(const Translator& translator, const Looked& seen, const Global& global) const {
    UnknownWords unknown(global);
    unknown.note(translator.tokenizers().source, seen.source, seen.source_ids, tr("the sentence"));
    if (o_.target || !o_.pairs.empty())
      unknown.note(translator.tokenizers().target, seen.target, seen.target_ids, tr("the translation"));
  }

  // The requested maps of a Transformer, in the requested form.
  int show(const Global& global, const Looked& seen, const report::SeenPair& pair,
           const std::vector<CellIndex>& boxes) const {
    if (o_.json) return print(report::to_json(seen, pair, o_.choice));
    if (o_.writes(".npz")) return write_arrays(o_, seen.target, report::to_arrays(pair, o_.choice), global);
    const bool text = !o_.output || o_.output->ends_with(".txt");
    const auto figures =
        attention_figures(pair, o_.choice, boxes, text ? report::FigureUse::terminal : report::FigureUse::paper);
    if (report::lacks_words(figures)) global.note(kNoWords);
    return draw(global, seen, figures);
  }

  int draw(const Global& global, const Looked& seen, const std::vector<Figure>& figures) const {
    return show_figures(
        o_, seen.target, figures, [&] { return to_html(seen, figures, global.language); }, global);
  }

  static int print(const std::string& json) {
    fmt::print("{}\n", json);
    return 0;
  }

  // Runs the Transformer on the whole pair at once: it reads <bos> and all but the last of the tokens it writes.
  report::SeenPair pair_of(const Translator& translator, const Transformer& model, const Looked& seen) const {
    const Tokenizer& source = translator.tokenizers().source;
    const Tokenizer& target = translator.tokenizers().target;
    std::vector<int32_t> read = seen.source_ids, written = seen.target_ids;
    require(!o_.steps || *o_.steps >= std::ssize(read),
            "--steps {value_or}: the sentence has {read} tokens with its <eos>", "value_or"_a = o_.steps.value_or(0),
            "read"_a = read.size());
    const int64_t most = model.config.facts().longest_input.value_or(INT64_MAX);
    require(!o_.steps || *o_.steps <= most, "--steps {value_or}: the model has learned {most} positions",
            "value_or"_a = o_.steps.value_or(0), "most"_a = most);
    if (o_.steps) read.resize(static_cast<size_t>(*o_.steps), source.pad());
    std::vector<int32_t> inputs{target.bos()};
    inputs.insert(inputs.end(), written.begin(), written.end() - 1);
    const auto row = [](const std::vector<int32_t>& ids) { return Ids({1, std::ssize(ids)}, ids); };
    const Ids length({1}, {static_cast<int32_t>(seen.source_ids.size())});
    const MapsWanted wanted = report::wanted_maps(o_.choice, model.config.facts());
    const report::SeenPair out{transformer_attention(model, row(read), length, row(inputs), {}, wanted),
                               source.tokens(read), target.tokens(inputs), target.tokens(written), wanted};
    if (!o_.by_word) return out;
    // A model may write a text in other tokens than its tokenizer would: then each of them counts as a word.
    const auto parts = [](const Tokenizer& tokenizer, const std::string& text, const std::vector<int32_t>& ids) {
      const std::vector<int32_t> own = tokenizer.encode(text);
      const bool same = own.size() <= ids.size() && std::equal(own.begin(), own.end(), ids.begin());
      return same ? tokenizer.word_of_token(text) : std::vector<int32_t>();
    };
    const auto reads = parts(source, seen.source, read), writes = parts(target, seen.target, written);
    return report::by_words(out, report::token_words(seen.source, reads, out.source_tokens, 0),
                            report::token_words(seen.target, writes, out.input_tokens, 1),
                            report::token_words(seen.target, writes, out.output_tokens, 0));
  }

  // Gold links as cells of tokens.
  std::vector<CellIndex> gold_boxes(const Translator& translator, const Looked& seen) const {
    if (!o_.gold) return {};
    const std::vector<std::string> lines = read_lines(*o_.gold);
    const auto n = static_cast<size_t>(*o_.line);
    check_same_lines(o_.pairs, seen.lines, *o_.gold, lines.size());
    const AlignmentFile gold =
        parse_alignments(lines, *o_.gold, o_.base ? std::optional<int>(static_cast<int>(*o_.base)) : std::nullopt);
    const auto columns = translator.tokenizers().source.word_of_token(seen.source),
               rows = translator.tokenizers().target.word_of_token(seen.target);
    const auto words = [](const std::vector<int32_t>& of) { return of.empty() ? 0 : of.back() + 1; };
    std::vector<CellIndex> out;
    for (const AlignmentLink& link : gold.lines[n - 1]) {
      require(link.source < words(columns) && link.target < words(rows),
              "{gold}: line {n}: the link {source}-{target} is outside the {columns} source and {rows} target words",
              "gold"_a = *o_.gold, "n"_a = n, "source"_a = link.source, "target"_a = link.target,
              "columns"_a = words(columns), "rows"_a = words(rows));
      for (size_t r = 0; r < rows.size(); ++r)
        for (size_t c = 0; c < columns.size(); ++c)
          if (rows[r] == link.target && columns[c] == link.source)
            out.push_back({static_cast<int64_t>(r), static_cast<int64_t>(c)});
    }
    return out;
  }

  const InspectOptions& o_;
};

}  // namespace

int inspect_translation(const InspectOptions& options, const Global& global) {
  return InspectTranslation(options).run(global);
}

}  // namespace qkv::cli
