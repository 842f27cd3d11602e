// qkv data fra-eng: the book's English-French file, fetched or taken from an archive, and recognised by its SHA-1.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "qkv/cli/data.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"
#include "qkv/io/sha1.h"
#include "qkv/io/zip.h"

extern char** environ;

namespace qkv::cli {
namespace {

constexpr const char* kAddress = "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip";
constexpr const char* kSha1 = "94646ad1522d915e7b0f9296181140edcf86a4f5";
constexpr const char* kMember = "fra-eng/fra.txt";
constexpr uint64_t kLargestArchive = uint64_t{256} << 20;

Text fetch_hint() {
  return {text("get ", kAddress, " elsewhere, then: qkv data fra-eng --from fra-eng.zip -o fra.txt"),
          text("请在别处下载 ", kAddress, "，然后运行：qkv data fra-eng --from fra-eng.zip -o fra.txt")};
}

// A file name of our own in the folder for such files; the file goes with it.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "qkv-fra-eng-XXXXXX").string()) {
    const int descriptor = ::mkstemp(path_.data());
    check(descriptor >= 0, "cannot make a temporary file: ", std::strerror(errno));
    ::close(descriptor);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a program of the PATH and returns its exit code; -1 when there is no such program.
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
  return code == 127 ? -1 : code;  // how a failed exec may show
}

void fetch(const std::string& address, const std::string& path, const Global& global) {
  std::string program = "curl";
  int code = run_program({"curl", "-fsL", "--connect-timeout", "20", "--max-filesize", std::to_string(kLargestArchive),
                          "-o", path, "--", address});
  if (code == -1) {
    program = "wget";
    code = run_program({"wget", "-q", "--connect-timeout=20", "--tries=2", "-O", path, "--", address});
  }
  if (code == -1) throw Error(text("cannot fetch ", address, ": neither curl nor wget is installed"), fetch_hint().in(global.language));
  if (code != 0)
    throw Error(text("cannot fetch ", address, ": ", program, " ended with exit code ", code), fetch_hint().in(global.language));
}

void check_archive(const std::string& path, const std::string& name, const Global& global) {
  const InputFile file(path);
  check(file.size() <= kLargestArchive, name, ": has ", grouped(file.size()), " bytes, the book's archive has far fewer");
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  const std::string found = sha1(bytes);
  if (found != kSha1) throw Error(text(name, ": its SHA-1 is ", found, ", expected ", kSha1), fetch_hint().in(global.language));
}

}  // namespace

int data_fra_eng(const DataOptions& o, const Global& global) {
  const std::string output = o.output.value_or("fra.txt"), source = o.from.value_or(kAddress);
  const bool remote = source.find("://") != std::string::npos;
  const TemporaryFile temporary;
  if (remote) fetch(source, temporary.path(), global);
  const std::string& archive = remote ? temporary.path() : source;
  check_archive(archive, source, global);
  const ZipFile zip(archive, "a .zip file");
  const auto member = std::find_if(zip.entries().begin(), zip.entries().end(), [](const ZipFile::Entry& e) { return e.name == kMember; });
  check(member != zip.entries().end(), source, ": has no ", kMember);
  const std::vector<std::byte> bytes = zip.unpack(*member);
  write_file(output, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Text done{text(output, ": ", grouped(bytes.size()), " bytes, the file of the book"),
                  text(output, "：", grouped(bytes.size()), " 字节，即书中所用的文件")};
  if (!global.quiet) std::printf("%s\n", done.in(global.language).c_str());
  return 0;
}

}  // namespace qkv::cli
