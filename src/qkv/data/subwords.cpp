// SentencePiece wrapped in our interface: the only file that includes it.
#include "qkv/data/subwords.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <unordered_map>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/subword_check.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

// SentencePiece's BPE trainer holds positions in a word, its blank included, in 16 bits with a sign; beyond that it
// reads out of bounds. Its unigram trainer aborts the process at NaN scores, which words of some ten thousand
// characters can have.
constexpr size_t kLongestWord = 32'766;

// SentencePiece's message on one line, without the source location at its start.
std::string reason(const sentencepiece::util::Status& status) {
  std::string message = status.error_message();
  if (const size_t bracket = message.find("] "); bracket != std::string::npos) message.erase(0, bracket + 2);
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (message.ends_with(' ')) message.pop_back();
  return message.empty() ? "SentencePiece gives no reason" : message;
}

// Both complaints about the number of pieces contain a number that would work: "too high (25). Please set it to a value
// <= 17.", "smaller than required_chars. 8 vs 11. Increase ...".
std::optional<int32_t> nearest_size(const std::string& complaint) {
  for (const std::string_view before : {"to a value <= ", " vs "}) {
    const size_t at = complaint.find(before);
    int32_t size = 0;
    if (at == std::string::npos || !complaint.starts_with("Vocabulary size")) continue;
    if (std::from_chars(complaint.data() + at + before.size(), complaint.data() + complaint.size(), size).ec ==
        std::errc())
      return size;
  }
  return {};
}

// SentencePiece allocates memory per byte, long before the number of pieces is known.
void check_length(std::string_view sentence) {
  check(sentence.size() <= limits::kSentenceBytes, "[subwords] a sentence has ", grouped(sentence.size()),
        " bytes, expected at most ", grouped(limits::kSentenceBytes));
}

// Whether there is anything but blanks and the character that SentencePiece uses for them.
bool has_text(std::string_view sentence) {
  constexpr std::string_view kBlank = "\xE2\x96\x81";
  while (!sentence.empty()) {
    if (sentence.starts_with(kBlank))
      sentence.remove_prefix(kBlank.size());
    else if (sentence[0] == ' ' || sentence[0] == '\t')
      sentence.remove_prefix(1);
    else
      return true;
  }
  return false;
}

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::span<const std::string> sentences) : sentences_(sentences) {}
  bool done() const override { return at_ == sentences_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return sentences_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::span<const std::string> sentences_;
  size_t at_ = 0;
};

}  // namespace

SubwordSizeError::SubwordSizeError(int32_t size, int32_t nearest)
    : Error(size > nearest
                ? tr("[subwords] {size} pieces were requested, but the text gives at most {nearest}", "size"_a = size,
                     "nearest"_a = nearest)
                : tr("[subwords] {size} pieces were requested, but the text's characters need at least {nearest}",
                     "size"_a = size, "nearest"_a = nearest)),
      nearest_(nearest) {}

struct Subwords::State {
  sentencepiece::SentencePieceProcessor processor;
  std::string bytes;  // the .model file
};

Subwords Subwords::train(std::span<const std::string> sentences, const SubwordOptions& options) {
  require(options.size >= kLeastSubwords,
          "[subwords] a model of {size} pieces was requested, expected at least {least}", "size"_a = options.size,
          "least"_a = kLeastSubwords);
  check(options.coverage > 0 && options.coverage <= 1, "[subwords] the coverage is ", options.coverage,
        ", expected more than 0, at most 1");
  size_t longest = 0;
  bool any = false;
  for (const std::string& sentence : sentences) {
    check(find_invalid_utf8(sentence) == std::string_view::npos, "[subwords] a sentence is not UTF-8");
    check_length(sentence);
    longest = std::max(longest, sentence.size());
    any = any || has_text(sentence);
    if (sentence.size() <= kLongestWord) continue;
    for (const std::string_view word : split_spaces(sentence))
      require(word.size() <= kLongestWord, "[subwords] a word has {bytes} bytes, expected at most {most}",
              "bytes"_a = grouped(word.size()), "most"_a = grouped(kLongestWord));
  }
  require(any, "[subwords] there is no text to train on");
  Sentences iterator(sentences);
  std::string bytes;
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.kind == SubwordKind::bpe ? "bpe" : "unigram"},
      {"vocab_size", text(options.size)},
      {"character_coverage", text(options.coverage)},
      {"unk_id", "0"},
      {"pad_id", "1"},
      {"bos_id", "2"},
      {"eos_id", "3"},
      {"unk_piece", "<unk>"},
      {"pad_piece", "<pad>"},
      {"bos_piece", "<bos>"},
      {"eos_piece", "<eos>"},
      {"max_sentence_length",
       text(std::max<size_t>(longest + 1, 4192))},  // by default longer sentences are dropped silently
      // No table of normalised characters in the model: SentencePiece follows a damaged one out of bounds.
      {"normalization_rule_name", "identity"},
      {"num_threads", "1"},
      {"minloglevel", "2"}};
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &bytes);
  if (const auto nearest = status.ok() ? std::nullopt : nearest_size(reason(status)))
    throw SubwordSizeError(options.size, *nearest);
  check(status.ok(), "[subwords] cannot train ", options.size, " pieces: ", reason(status));
  return from_bytes(std::move(bytes), "[subwords] the trained model");
}

Subwords Subwords::from_bytes(std::string bytes, const std::string& name, bool pretrained) {
  check_subword_model(bytes, name);
  const auto state = std::make_shared<State>();
  try {
    const auto status = state->processor.LoadFromSerializedProto(bytes);
    require(status.ok(), "{name}: not a SentencePiece model, or damaged: {status}", "name"_a = name,
            "status"_a = reason(status));
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // from the library's trie; its message names the library's sources
    refuse("{name}: damaged: SentencePiece cannot build a trie from its pieces", "name"_a = name);
  }
  const auto& p = state->processor;
  require(p.GetPieceSize() > 0, "{name}: the model has no pieces", "name"_a = name);
  for (const auto& [special, id] :
       {std::pair{"<unk>", p.unk_id()}, {"<pad>", p.pad_id()}, {"<bos>", p.bos_id()}, {"<eos>", p.eos_id()}})
    require((id >= 0 && id < p.GetPieceSize()) || (pretrained && id != p.unk_id()),
            "{name}: the model has no piece for {special}", "name"_a = name, "special"_a = special);
  state->bytes = std::move(bytes);
  return Subwords(state);
}

Subwords Subwords::load(const std::string& path) { return from_file(path, false); }
Subwords Subwords::load_pretrained(const std::string& path) { return from_file(path, true); }

Subwords Subwords::from_file(const std::string& path, bool pretrained) {
  const InputFile file(path);
  require(file.size() > 0, "{path}: is empty, expected a SentencePiece model", "path"_a = path);
  require(file.size() <= limits::kSubwordModelBytes, "{path}: has {size} bytes, expected a model of at most {most}",
          "path"_a = path, "size"_a = grouped(file.size()), "most"_a = grouped(limits::kSubwordModelBytes));
  std::string bytes(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  return from_bytes(std::move(bytes), path, pretrained);
}

void Subwords::save(const std::string& path) const { write_file(path, state_->bytes); }

std::vector<int32_t> Subwords::encode(std::string_view sentence) const {
  check_length(sentence);
  std::vector<int> ids;
  const auto status = state_->processor.Encode(sentence, &ids);
  check(status.ok(), "[subwords] cannot encode: ", reason(status));
  return {ids.begin(), ids.end()};
}

std::vector<Piece> Subwords::encode_pieces(std::string_view sentence) const {
  check_length(sentence);
  const sentencepiece::ImmutableSentencePieceText encoded = state_->processor.EncodeAsImmutableProto(sentence);
  std::vector<Piece> out;
  for (size_t i = 0; i < encoded.pieces_size(); ++i) {
    const auto piece = encoded.pieces(static_cast<int>(i));
    out.push_back({static_cast<int32_t>(piece.id()), piece.begin()});
  }
  return out;
}

std::vector<TextPiece> Subwords::encode_text_pieces(std::string_view sentence) const {
  check_length(sentence);
  const sentencepiece::ImmutableSentencePieceText encoded = state_->processor.EncodeAsImmutableProto(sentence);
  std::vector<TextPiece> out;
  for (size_t i = 0; i < encoded.pieces_size(); ++i) {
    const auto piece = encoded.pieces(static_cast<int>(i));
    out.push_back({static_cast<int32_t>(piece.id()), piece.piece(), piece.begin(), piece.end()});
  }
  return out;
}

std::optional<int32_t> Subwords::find(std::string_view piece) const {
  const int id = state_->processor.PieceToId(piece);
  return id >= 0 && id < size() && state_->processor.IdToPiece(id) == piece ? std::optional<int32_t>(id) : std::nullopt;
}

bool Subwords::is_control(int32_t id) const { return state_->processor.IsControl(id); }

std::string Subwords::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) piece(id);  // SentencePiece does not check
  std::string out;
  const auto status = state_->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &out);
  check(status.ok(), "[subwords] cannot decode: ", reason(status));
  check(find_invalid_utf8(out) == std::string_view::npos,
        "[subwords] the model's table of characters makes text that is not UTF-8");
  return out;
}

const std::string& Subwords::piece(int32_t id) const {
  check(id >= 0 && id < size(), "[subwords] no piece has the number ", id, ", expected 0 to ", size() - 1);
  return state_->processor.IdToPiece(id);
}

int32_t Subwords::size() const { return state_->processor.GetPieceSize(); }
int32_t Subwords::unk() const { return state_->processor.unk_id(); }
int32_t Subwords::pad() const { return state_->processor.pad_id(); }
int32_t Subwords::bos() const { return state_->processor.bos_id(); }
int32_t Subwords::eos() const { return state_->processor.eos_id(); }

std::string subword_library() { return "SentencePiece " QKV_SENTENCEPIECE_VERSION; }

}  // namespace qkv
