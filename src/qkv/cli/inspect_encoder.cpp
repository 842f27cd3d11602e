// qkv inspect for encoders: the attention of a text, with the model's own special tokens.
#include "qkv/cli/inspect.h"
#include "qkv/data/text.h"
#include "qkv/report/attention_words.h"
#include "qkv/tasks/encoding/sentence_encoder.h"

namespace qkv::cli {

int inspect_encoder(const InspectOptions& o, const Global& global) {
  if (!o.pairs.empty() || o.target || o.beam || o.steps)
    throw UsageError(tr("--pairs, --target, --beam and --steps are for translation models; this model encodes texts"));
  if (o.patch || o.resize) throw UsageError(tr("--patch and --resize are for models that classify images"));
  const std::string text = o.sentence();
  check_utf8(text, tr("the text"));
  const SentenceEncoder encoder(o.model);
  const EncodedText read = encoder.read_whole(text);
  const MapsWanted wanted = report::wanted_maps(o.choice, encoder.facts());
  const StackAttention found = encoder.attention(read, {}, wanted);
  const bool as_data = o.json || o.writes(".npz");
  const std::vector<std::string> tokens = as_data ? encoder.pieces(read) : encoder.labels(read);
  report::SeenPair seen{{{found.weights, {}, {}}, {found.value_weighted, {}, {}}}, tokens, tokens, tokens, wanted};
  if (o.by_word) seen = report::by_words(seen, report::token_words(text, read, tokens), {}, {});
  const report::SeenSentence title{
      .source = text, .target = {}, .source_tokens = seen.source_tokens, .target_tokens = {}, .attention = {}};
  return show_text(o, text, seen, title, global);
}

}  // namespace qkv::cli
