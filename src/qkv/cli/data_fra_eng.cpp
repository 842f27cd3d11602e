// qkv data fra-eng: the book's English-French file, fetched, unpacked or copied, and recognised by its SHA-1.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "qkv/cli/data.h"
#include "qkv/core/numbers.h"
#include "qkv/core/system_reason.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"
#include "qkv/io/sha1.h"
#include "qkv/io/zip.h"

extern char** environ;

namespace qkv::cli {
namespace {

constexpr const char* kAddress = "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip";
constexpr const char* kSha1 = "94646ad1522d915e7b0f9296181140edcf86a4f5";
constexpr const char* kTextSha1 = "c43f99dce27311d3afd4d3e0716848194cfcc103";  // of the file inside
constexpr const char* kMember = "fra-eng/fra.txt";
constexpr uint64_t kLargestArchive = uint64_t{256} << 20;

Text fetch_hint() {
  return tr(
      "download {address} on a machine with network access, then run: qkv data fra-eng --from fra-eng.zip -o fra.txt",
      "address"_a = kAddress);
}

// A new file in the folder for temporary files; the destructor removes it.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "qkv-fra-eng-XXXXXX").string()) {
    const int descriptor = ::mkstemp(path_.data());
    require(descriptor >= 0, "cannot make a temporary file: {errno}", "errno"_a = system_reason(errno));
    ::close(descriptor);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a program from the PATH and returns its exit code; -1 if there is no such program.
int run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 255;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code == 127 ? -1 : code;  // a failed exec may look like this
}

// The meaning of an exit code of curl or wget.
Text reason(const std::string& program, int code) {
  const bool curl = program == "curl";
  if (curl && code == 6) return tr("host not found; is there a network connection?");
  if ((curl && code == 7) || (!curl && code == 4)) return tr("host not reachable; is there a network connection?");
  if (curl && code == 28) return tr("the host does not answer");
  if ((curl && code == 22) || (!curl && code == 8))
    return tr("the server refused the request or does not have the file");
  if (curl && code == 63) return tr("the file has more than {most} bytes", "most"_a = grouped(kLargestArchive));
  return tr("{program} ended with exit code {code}", "program"_a = program, "code"_a = code);
}

void fetch(const std::string& address, const std::string& path) {
  std::string program = "curl";
  int code = run_program({"curl", "-fsL", "--connect-timeout", "20", "--max-filesize", std::to_string(kLargestArchive),
                          "-o", path, "--", address});
  if (code == -1) {
    program = "wget";
    code = run_program({"wget", "-q", "--connect-timeout=20", "--tries=2", "-O", path, "--", address});
  }
  if (code == -1)
    throw Error(tr("cannot fetch {address}: neither curl nor wget is installed", "address"_a = address), fetch_hint());
  if (code != 0)
    throw Error(tr("cannot fetch {address}: {code}", "address"_a = address, "code"_a = reason(program, code)),
                fetch_hint());
}

std::vector<std::byte> bytes_of(const std::string& path, const std::string& name) {
  const InputFile file(path);
  require(file.size() <= kLargestArchive, "{name}: has {file} bytes; the book's archive has far fewer", "name"_a = name,
          "file"_a = grouped(file.size()));
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

// The text: unpacked if the file is the archive, else the file itself.
std::vector<std::byte> book_text(const std::string& path, const std::string& name) {
  std::vector<std::byte> bytes = bytes_of(path, name);
  const std::string found = sha1(bytes);
  if (found == kTextSha1) return bytes;
  if (found == kSha1) {
    const ZipFile zip(path, tr("a .zip file"));
    const auto member = std::find_if(zip.entries().begin(), zip.entries().end(),
                                     [](const ZipFile::Entry& e) { return e.name == kMember; });
    require(member != zip.entries().end(), "{name}: has no {member}", "name"_a = name, "member"_a = kMember);
    return zip.unpack(*member);
  }
  const bool archive = bytes.size() >= 2 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'};
  if (archive)
    throw Error(
        tr("{name}: its SHA-1 is {found}, expected {sha1}", "name"_a = name, "found"_a = found, "sha1"_a = kSha1),
        fetch_hint());
  throw Error(
      tr("{name}: neither the book's archive nor its text: its SHA-1 is {found}, expected {sha1} or {text_sha1}",
         "name"_a = name, "found"_a = found, "sha1"_a = kSha1, "text_sha1"_a = kTextSha1),
      tr("your own pairs need no preparation: qkv train --data FILE"));
}

class FraEng : public Command {
 public:
  std::string name() const override { return "data fra-eng"; }
  Text summary() const override { return tr("the book's English-French file, fetched, unpacked or copied"); }
  std::string example() const override { return "qkv data fra-eng -o fra.txt"; }
  void bind(Options& o) override {
    o.option("-o,--output FILE", tr("where to write the text"), output_);
    o.option("--from FILE|URL", tr("the archive or its fra.txt, if you already have it, or another download address"),
             source_);
  }
  int run(const Global& global) override {
    const bool remote = source_.find("://") != std::string::npos;
    const TemporaryFile temporary;
    if (remote) fetch(source_, temporary.path());
    const std::vector<std::byte> bytes = book_text(remote ? temporary.path() : source_, source_);
    std::error_code ignored;  // the output may not exist yet
    if (!std::filesystem::equivalent(source_, output_, ignored))
      write_file(output_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    global.say(tr("{output}: {bytes} bytes, the book's file", "output"_a = output_, "bytes"_a = grouped(bytes.size())));
    return 0;
  }

 private:
  std::string output_ = "fra.txt", source_ = kAddress;
};

}  // namespace

std::unique_ptr<Command> data_fra_eng() { return std::make_unique<FraEng>(); }

}  // namespace qkv::cli
