// Mutants of corpora, vocabularies, alignments, metrics, tokenizers and subword models.
#include <zlib.h>

#include "mutator.h"
#include "qkv/data/corpus.h"
#include "qkv/data/tokenizer.h"
#include "qkv/eval/alignment.h"
#include "qkv/train/metrics.h"
#include "support/subword_models.h"

using namespace qkv;
using namespace qkv_test;

namespace {

const std::vector<std::string> kText = {"\t",
                                        "\n",
                                        "\r\n",
                                        " ",
                                        "\xEF\xBB\xBF",
                                        "\xFF\xFE",
                                        "<unk>",
                                        "<eos>",
                                        "\xE2\x96\x81",
                                        "\xF0\x9F\x98\x80",
                                        std::string(1, '\0')};

std::string gzipped(const std::string& text) {
  const TempFolder folder;
  const gzFile file = gzopen((folder / "x.gz").c_str(), "wb");
  check(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()), "cannot pack");
  gzclose(file);
  return file_bytes(folder / "x.gz");
}

void use(const Subwords& model) {
  for (const char* sentence :
       {"the walker works, \xE8\xAF\x8D.", "\xEF\xBC\xA1\xEF\xBC\xA2 \xEF\xAC\x81x \xE2\x96\x81 <unk>", ""}) {
    const std::vector<int32_t> ids = model.encode(sentence);
    model.decode(ids);
    model.encode_pieces(sentence);
  }
}

}  // namespace

TEST(Mutants, OfPairsAreReadOrRefused) {
  const TempFolder folder;
  const std::string pairs = "the cat sleeps .\tle chat dort .\ngo !\tva !\n\xC3\xA9t\xC3\xA9\tsummer\n";
  survives({{pairs}, kText}, folder / "x.tsv", mutants(1000), [](const std::string& p) { read_pairs(p); });
  survives({{gzipped(pairs), gzipped(pairs) + gzipped(pairs)}}, folder / "x.tsv.gz", mutants(1000),
           [](const std::string& p) {
             read_pairs(p);
             read_pairs(p, 2);
           });
}

TEST(Mutants, OfVocabulariesAreReadOrRefused) {
  const TempFolder folder;
  survives({{"<unk>\n<pad>\n<bos>\n<eos>\nthe\ncat\n"}, kText}, folder / "vocab.source.txt", mutants(1000),
           [](const std::string& p) { Vocabulary::load(p); });
}

TEST(Mutants, OfTokenizersAreReadOrRefused) {
  const TempFolder folder;
  put_bytes(folder / "vocab.source.txt", "<unk>\n<pad>\n<bos>\n<eos>\nthe\ncat\n");
  survives({{"words book\n", "words spaces\n"}, {"words", "subwords", "lower", "cased", "book", "\n", " "}},
           folder / "tokenizer.source.txt", mutants(),
           [&](const std::string&) { Tokenizer::load(folder.path(), "source").encode("the cat."); });
}

TEST(Mutants, OfAlignmentsAreReadOrRefused) {
  const TempFolder folder;
  survives({{"0-0 1-2 2p1\n\n3-3 1?1\n"}, {"-", "p", "?", "99999999999", "\n", " ", "--"}}, folder / "x.align",
           mutants(1000), [](const std::string& p) { parse_alignments(read_lines(p), p); });
}

TEST(Mutants, OfMetricsAreReadOrRefused) {
  const TempFolder folder;
  survives({{"{\"kind\":\"epoch\",\"epoch\":1,\"step\":4,\"loss\":2.5}\n"
             "{\"kind\":\"epoch\",\"epoch\":2,\"step\":8,\"loss\":1.5}\n"},
            {"{", "}", "[", "]", "\"step\"", "null", "1e999", std::string(5000, '['), "\n"}},
           folder / "metrics.jsonl", mutants(1000), [](const std::string& p) {
             Progress progress;
             progress.step = 6;
             MetricsFile(p).started(progress);
           });
}

TEST(Mutants, OfSubwordModelsAreUsedOrRefused) {
  const TempFolder folder;
  const std::vector<std::string> words = {"\x0a",     "\x12",     "\x1a",    "\x22", std::string("\x15\0\0\xc0\x7f", 5),
                                          "\x18\x06", "\x18\x02", "\x08\x01"};
  for (const char* kind : {"bpe", "unigram"})
    survives({{trained_model(kind, "identity")}, words}, folder / "x.model", mutants(),
             [](const std::string& p) { use(Subwords::load(p)); });
}

TEST(Mutants, OfTablesOfCharactersAreUsedOrRefused) {
  const TempFolder folder;
  const std::string model = trained_model("bpe", "identity"), table = table_of(trained_model("bpe", "nmt_nfkc"));
  const std::string path = folder / "x.model";
  survives({{table}}, folder / "x.table", mutants(150), [&](const std::string& p) {
    put_bytes(path, with_table(model, file_bytes(p), 3));
    use(Subwords::load(path));
    put_bytes(path, with_table(model, file_bytes(p), 5));
    use(Subwords::load(path));
  });
}
