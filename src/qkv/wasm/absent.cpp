// What the page's engine cannot do: read compressed files, make PNG files or subword models, and run as several
// processes. Each says so in one line where it is asked for.
#include "qkv/core/check.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/data/subword_check.h"
#include "qkv/data/subwords.h"
#include "qkv/io/gzip.h"
#include "qkv/io/png.h"
#include "qkv/io/zip.h"
#include "qkv/plot/png.h"
#include "qkv/ranks/ranks.h"
#include "qkv/tasks/encoding/data.h"
#include "qkv/tasks/encoding/run.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/pretrained/translation.h"

namespace qkv {
namespace {

[[noreturn]] void refuse_packed(const std::string& name) {
  refuse("{name}: is compressed, which the engine in the page cannot read", "name"_a = name);
}
[[noreturn]] void refuse_png() { refuse("the engine in the page cannot read or write PNG files"); }
[[noreturn]] void refuse_subwords() {
  refuse("the engine in the page has no subwords: it reads models with a vocabulary of words or characters");
}

[[noreturn]] void refuse_pretrained() { refuse("the engine in the page reads models of qkv train alone"); }
[[noreturn]] void refuse_ranks() { refuse("the engine in the page is one process"); }

}  // namespace

bool is_gzip(const InputFile& file) {
  unsigned char start[2] = {};
  if (file.size() < 2) return false;
  file.read(0, std::as_writable_bytes(std::span(start)));
  return start[0] == 0x1f && start[1] == 0x8b;
}
struct GzipStream::State {};
GzipStream::GzipStream(const InputFile& file) { refuse_packed(file.path()); }
GzipStream::~GzipStream() = default;
size_t GzipStream::read(std::span<std::byte>) { return 0; }
std::string gzipped(std::string_view) { refuse_packed("a file that is written"); }

ZipFile::ZipFile(const std::string& path, Text) : file_(path) { refuse_packed(path); }
std::vector<std::byte> ZipFile::unpack(const Entry&) const { refuse_packed(path()); }
struct ZipFile::Stream::State {};
ZipFile::Stream::Stream(const ZipFile& zip, const Entry&) { refuse_packed(zip.path()); }
ZipFile::Stream::~Stream() = default;
void ZipFile::Stream::read(uint64_t, std::span<std::byte>) {}
void ZipFile::Stream::finish() {}
uint32_t crc_of(std::span<const std::byte>) { return 0; }
std::vector<std::byte> deflated(std::span<const std::byte>) { refuse_packed("a file that is written"); }
std::string zip_library() { return "no zlib"; }

Picture read_png(const std::string&) { refuse_png(); }
Picture decode_png(std::span<const std::byte>, const std::string&) { refuse_png(); }
std::string encode_png(std::span<const uint8_t>, int64_t, int64_t, PngPixels, const std::string&) { refuse_png(); }
std::string encode_png(const Picture&) { refuse_png(); }

namespace plotting {
std::string encode_png_indexed(std::span<const uint8_t>, int64_t, int64_t, std::span<const Colour>) { refuse_png(); }
std::string encode_png_rgb(std::span<const uint8_t>, int64_t, int64_t) { refuse_png(); }
std::string render_png(const std::string&, double) { refuse_png(); }
}  // namespace plotting

SubwordSizeError::SubwordSizeError(int32_t size, int32_t nearest)
    : Error(verbatim(text("subwords: ", size, " is not possible"))), nearest_(nearest) {}
struct Subwords::State {};
Subwords Subwords::train(std::span<const std::string>, const SubwordOptions&) { refuse_subwords(); }
Subwords Subwords::load(const std::string&) { refuse_subwords(); }
Subwords Subwords::load_pretrained(const std::string&) { refuse_subwords(); }
void Subwords::save(const std::string&) const { refuse_subwords(); }
std::vector<int32_t> Subwords::encode(std::string_view) const { refuse_subwords(); }
std::vector<Piece> Subwords::encode_pieces(std::string_view) const { refuse_subwords(); }
std::vector<TextPiece> Subwords::encode_text_pieces(std::string_view) const { refuse_subwords(); }
std::string Subwords::decode(std::span<const int32_t>) const { refuse_subwords(); }
std::optional<int32_t> Subwords::find(std::string_view) const { refuse_subwords(); }
bool Subwords::is_control(int32_t) const { refuse_subwords(); }
const std::string& Subwords::piece(int32_t) const { refuse_subwords(); }
int32_t Subwords::size() const { refuse_subwords(); }
int32_t Subwords::unk() const { refuse_subwords(); }
int32_t Subwords::pad() const { refuse_subwords(); }
int32_t Subwords::bos() const { refuse_subwords(); }
int32_t Subwords::eos() const { refuse_subwords(); }
void check_subword_model(std::string_view, const std::string&) { refuse_subwords(); }
std::string subword_library() { return "no SentencePiece"; }

struct PretrainedTokenizer::State {};
PretrainedTokenizer PretrainedTokenizer::open(const std::string&, std::string_view) { refuse_pretrained(); }
PretrainedTokenizer PretrainedTokenizer::open_llama2c(const std::string&, int32_t) { refuse_pretrained(); }
void PretrainedTokenizer::save(const std::string&) const { refuse_pretrained(); }
const std::string& PretrainedTokenizer::kind() const { refuse_pretrained(); }
std::vector<int32_t> EncodedText::ids() const { refuse_pretrained(); }
EncodedText PretrainedTokenizer::encode(std::string_view, const EncodeOptions&) const { refuse_pretrained(); }
EncodedText PretrainedTokenizer::encode_target(std::string_view, const EncodeOptions&) const { refuse_pretrained(); }
std::string PretrainedTokenizer::decode(std::span<const int32_t>, const DecodeOptions&) const { refuse_pretrained(); }
const std::string& PretrainedTokenizer::piece(int32_t) const { refuse_pretrained(); }
std::string PretrainedTokenizer::shown(int32_t) const { refuse_pretrained(); }
int32_t PretrainedTokenizer::size() const { refuse_pretrained(); }
const SpecialIds& PretrainedTokenizer::special() const { refuse_pretrained(); }
bool PretrainedTokenizer::is_special(int32_t) const { refuse_pretrained(); }
bool is_pretrained_folder(const std::string&) { return false; }
Architecture architecture_of(const std::string&) { refuse_pretrained(); }
TaskKind task_of(Architecture) { refuse_pretrained(); }
TrainingStart start_from(const std::string&, const Parameters&, const std::set<std::string>&) { refuse_pretrained(); }
std::vector<std::string> load_encoder_classes(const std::string&) { refuse_pretrained(); }
PretrainedTokenizer open_encoder_tokenizer(const std::string&, Architecture) { refuse_pretrained(); }
void save(const TrainingStart&, const std::string&) { refuse_pretrained(); }
std::optional<TrainingStart> read_start(const std::string&) { return {}; }
PretrainedTranslation open_pretrained_translation(const std::string&) { refuse_pretrained(); }

struct Ranks::State {};
Ranks::Ranks(std::unique_ptr<Link>, const RankOptions&) { refuse_ranks(); }
Ranks::~Ranks() = default;
int Ranks::rank() const { return 0; }
int Ranks::size() const { return 1; }
Text Ranks::name(int) const { refuse_ranks(); }
std::vector<std::string> Ranks::gather(const std::string&) { refuse_ranks(); }
void Ranks::broadcast(std::span<std::byte>) { refuse_ranks(); }
std::string Ranks::broadcast(const std::string&) { refuse_ranks(); }
void Ranks::set_place(Text) {}
void Ranks::set_patient(bool) {}
void Ranks::send(const void*, size_t, int, int, Done) { refuse_ranks(); }
void Ranks::receive(void*, size_t, int, int, Done) { refuse_ranks(); }
void Ranks::locked(const std::function<void()>&) { refuse_ranks(); }
void Ranks::wait(const std::function<bool()>&) { refuse_ranks(); }
void Ranks::keep(std::shared_ptr<void>) {}
uint64_t Ranks::bytes_sent() const { return 0; }
uint64_t Ranks::bytes_received() const { return 0; }
Ranks::Background::Background(Ranks& ranks) : ranks_(ranks) {}
Ranks::Background::~Background() { (void)ranks_; }
std::vector<double> shared_rows(Ranks*, int64_t items, int64_t width,
                                const std::function<void(int64_t i, double* row)>& compute) {
  std::vector<double> rows(static_cast<size_t>(items * width));
  for (int64_t i = 0; i < items; ++i) compute(i, rows.data() + i * width);
  return rows;
}
std::vector<std::string> shared_texts(
    Ranks*, int64_t items, const std::function<std::vector<std::string>(int64_t begin, int64_t end)>& compute) {
  return compute(0, items);
}

}  // namespace qkv
