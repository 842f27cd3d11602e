// Both forms of each noun are whole texts, because languages differ in how they make them.
#include "qkv/core/counts.h"

#include "qkv/core/numbers.h"

namespace qkv {

Text byte_count(uint64_t n) { return n == 1 ? tr("1 byte") : tr("{bytes} bytes", "bytes"_a = grouped(n)); }
Text claim_count(uint64_t n) { return n == 1 ? tr("1 claim") : tr("{claims} claims", "claims"_a = grouped(n)); }
Text file_count(uint64_t n) { return n == 1 ? tr("1 file") : tr("{files} files", "files"_a = grouped(n)); }
Text image_count(uint64_t n) { return n == 1 ? tr("1 image") : tr("{images} images", "images"_a = grouped(n)); }
Text layer_count(uint64_t n) { return n == 1 ? tr("1 layer") : tr("{layers} layers", "layers"_a = grouped(n)); }
Text line_count(uint64_t n) { return n == 1 ? tr("1 line") : tr("{lines} lines", "lines"_a = grouped(n)); }
Text link_count(uint64_t n) { return n == 1 ? tr("1 link") : tr("{links} links", "links"_a = grouped(n)); }
Text pair_count(uint64_t n) { return n == 1 ? tr("1 pair") : tr("{pairs} pairs", "pairs"_a = grouped(n)); }
Text text_count(uint64_t n) { return n == 1 ? tr("1 text") : tr("{texts} texts", "texts"_a = grouped(n)); }
Text token_count(uint64_t n) { return n == 1 ? tr("1 token") : tr("{tokens} tokens", "tokens"_a = grouped(n)); }
Text update_count(uint64_t n) { return n == 1 ? tr("1 update") : tr("{updates} updates", "updates"_a = grouped(n)); }

}  // namespace qkv
