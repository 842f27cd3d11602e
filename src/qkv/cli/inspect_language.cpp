// qkv inspect for language models: the attention of a text.
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
  return show_text(o, text, seen, title, global);
}

}  // namespace qkv::cli
