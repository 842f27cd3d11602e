// SentencePiece models for tests: trained with a table of normalised characters, and put together by hand.
#pragma once

#include <sentencepiece_trainer.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qkv/core/check.h"

namespace qkv_test {

/// The bytes of a small model of that kind ("bpe", "unigram") and rule ("identity", "nmt_nfkc", ...), with qkv's
/// special pieces.
inline std::string trained_model(const std::string& kind, const std::string& rule) {
  struct Sentences : sentencepiece::SentenceIterator {
    std::vector<std::string> all = {"the walker walks at home.",
                                    "a worker works in the workshop!",
                                    "the talker talked slowly",
                                    "ein Läufer läuft heute?",
                                    "le garçon travaille à la maison.",
                                    "the worker is working",
                                    "ABC abc"};
    size_t at = 0;
    bool done() const override { return at == all.size(); }
    void Next() override { ++at; }
    const std::string& value() const override { return all[at]; }
    sentencepiece::util::Status status() const override { return {}; }
  } sentences;
  const std::unordered_map<std::string, std::string> settings = {{"model_type", kind},
                                                                 {"vocab_size", "48"},
                                                                 {"character_coverage", "1"},
                                                                 {"unk_id", "0"},
                                                                 {"pad_id", "1"},
                                                                 {"bos_id", "2"},
                                                                 {"eos_id", "3"},
                                                                 {"unk_piece", "<unk>"},
                                                                 {"pad_piece", "<pad>"},
                                                                 {"bos_piece", "<bos>"},
                                                                 {"eos_piece", "<eos>"},
                                                                 {"hard_vocab_limit", "false"},
                                                                 {"normalization_rule_name", rule},
                                                                 {"num_threads", "1"},
                                                                 {"minloglevel", "2"}};
  std::string bytes;
  qkv::check(sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &bytes).ok(),
             "the model cannot be trained");
  return bytes;
}

inline void append_varint(std::string& out, size_t number) {
  for (; number > 127; number >>= 7) out += static_cast<char>(number | 128);
  out += static_cast<char>(number);
}

/// A field of a protocol buffer that holds bytes.
inline std::string field(int number, std::string_view content) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  append_varint(out, content.size());
  return out.append(content);
}

/// The model with that table on top: field 3 is that of the text that comes in, 5 that of the text that goes out.
inline std::string with_table(const std::string& model, std::string_view table, int where) {
  return model + field(where, field(1, "by hand") + field(2, table));
}

/// The table of the text that comes in, of a trained model.
inline std::string table_of(const std::string& model) {
  for (size_t at = 0; at < model.size();) {
    const auto number = [&] {
      size_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(model.at(at++));
        value |= static_cast<size_t>(byte & 127) << shift;
        if (byte < 128) return value;
      }
    };
    const size_t tag = number(), size = number();  // the fields of a model all hold bytes
    if (tag >> 3 != 3) {
      at += size;
      continue;
    }
    for (const size_t end = at + size; at < end;) {
      const size_t inner = number(), length = number();
      if (inner == (2 << 3 | 2)) return model.substr(at, length);
      if ((inner & 7) == 2) at += length;
    }
  }
  return "";
}

}  // namespace qkv_test
