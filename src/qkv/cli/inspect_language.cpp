// qkv inspect for language models: the attention of a text.
#include <fmt/format.h>

#include <cstdio>

#include "qkv/cli/inspect.h"
#include "qkv/cli/unknown_text.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/text.h"
#include "qkv/report/attention_words.h"
#include "qkv/tasks/language/generator.h"

namespace qkv::cli {

int inspect_language(const InspectOptions& o, const Global& global) {
  if (!o.pairs.empty() || o.target || o.beam || o.steps)
    throw UsageError(tr("--pairs, --target, --beam and --steps are for translation models; this is a language model"));
  if (o.patch || o.resize) throw UsageError(tr("--patch and --resize are for models that classify images"));
  const std::string text = o.sentence();
  check_utf8(text, tr("the text"));
  const LanguageGenerator generator(o.model);
  note_unfinished(o.model, global);
  note_unknown(generator.unknown(text), tr("the text"), global);
  if (o.writes_explorer() && generator.objective() == LanguageObjective::causal)
    return write_explorer(o, text, {}, global);
  const LanguageBatch batch = generator.batch_of(text);
  const MapsWanted wanted = report::wanted_maps(o.choice, generator.config().model.facts());
  const std::vector<std::string> read = generator.tokens(batch.read.data());
  report::SeenPair seen{language_attention(generator.model(), batch, wanted), read, read, read, wanted};
  report::SeenSentence title{.source = text, .target = {}, .source_tokens = read, .target_tokens = {}, .attention = {}};
  if (generator.objective() == LanguageObjective::spans)
    seen.input_tokens = seen.output_tokens = generator.tokens(batch.written.data());
  if (o.by_word)
    seen = report::by_words(seen, report::token_words(seen.source_tokens), report::token_words(seen.input_tokens),
                            report::token_words(seen.output_tokens));
  if (o.json) {
    fmt::print("{}\n", report::text_json(text, seen, o.choice));
    return 0;
  }
  if (o.writes(".npz")) return write_arrays(o, text, report::to_arrays(seen, o.choice), global);
  const bool drawn_as_text = !o.output || o.writes(".txt");
  const auto figures =
      attention_figures(seen, o.choice, {}, drawn_as_text ? report::FigureUse::terminal : report::FigureUse::paper);
  if (report::lacks_words(figures))
    global.note(
        tr("too many heads and words to label: the axes show positions; --layer and --head draw fewer maps, "
           "with words"));
  return show_figures(
      o, text, figures, [&] { return to_html(title, figures, global.language); }, global);
}

}  // namespace qkv::cli
