// Translation data for models: pairs of ids, batches of them, and the book's two loaders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/corpus.h"
#include "qkv/data/tokenizer.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// A sentence pair: both sides without <bos>, both ending with <eos>.
struct IdPair {
  std::vector<int32_t> source, target;
};

/// Encodes pairs and appends each side's <eos>.
std::vector<IdPair> encode_pairs(const SentencePairs& pairs, const Tokenizer& source, const Tokenizer& target);

/// B sentences of at most T source and T' target tokens, padded with <pad>. target_in is <bos>, then target_out without
/// its last column.
struct TranslationBatch {
  Ids source;       // (B, T)
  Ids source_lens;  // (B)
  Ids target_in;    // (B, T')
  Ids target_out;   // (B, T')
  Ids target_lens;  // (B)
};

struct BatchOptions {
  int64_t rows = 64;
  /// Limit on rows times the longest side of the batch, padding included; 0: cut by rows. Implies by_length.
  int64_t tokens = 0;
  bool by_length = false;    // batches of similar lengths
  int64_t fixed_steps = 0;   // T and T', longer sides cut (the book: 10); 0: as long as the longest of the batch
  int64_t source_steps = 0;  // at least this T: for an encoder that also reads the padding (the book: 10)
  bool shuffle = true;       // again in every epoch
  uint64_t seed = 0;
};

/// The batches of an epoch. batch(epoch, index) is a pure function of both, and batches() is the same in every epoch:
/// the order of lengths, and so every cut, does not depend on the shuffle. Safe to call from several threads.
class TranslationBatches {
 public:
  TranslationBatches(std::vector<IdPair> pairs, int32_t pad_source, int32_t pad_target, int32_t bos,
                     const BatchOptions& options);
  int64_t batches() const;
  TranslationBatch batch(int64_t epoch, int64_t index) const;
  /// The indices of the pairs in a batch, in the order of its rows.
  std::vector<int64_t> rows(int64_t epoch, int64_t index) const;
  const std::vector<IdPair>& pairs() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // copies share it
};

/// One of the book's corpora: training data and array length.
struct BookCorpus {
  Tokenizer source, target;               // words by the book's rule over the vocabularies of these pairs
  SentencePairs sentences;                // preprocessed: "go ." and "va !"
  std::vector<IdPair> train, validation;  // the Chinese edition has no validation set
  int64_t num_steps = 0;                  // for BatchOptions::fixed_steps
};

/// The Chinese edition's load_data_nmt on fra.txt: lines 0 to num_examples inclusive, so one more (-1: all), words that
/// occur at least twice, arrays of 10 steps. A line without two columns is an error here; the book skips it.
BookCorpus load_book_zh(const std::string& path, int64_t num_examples = 600);
/// The English edition's MTFraEng: num_train + num_val + 1 lines, vocabularies of the padded lists, arrays of 9 steps;
/// all but the first num_train pairs are for validation.
BookCorpus load_book_en(const std::string& path, int64_t num_train = 512, int64_t num_val = 128, int64_t num_steps = 9);

}  // namespace qkv
