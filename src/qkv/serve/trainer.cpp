// fork, then only calls that are safe between fork and exec.
#include "qkv/serve/trainer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>

namespace qkv::serve {
namespace {

constexpr std::string_view kError = "qkv: error: ";

}  // namespace

Trainer::~Trainer() {
  stop();
  if (errors_ >= 0) ::close(errors_);
}

void Trainer::start(std::vector<std::string> command) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  if (errors_ < 0) errors_ = ::memfd_create("qkv-training", MFD_CLOEXEC);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  failed_ = process_ < 0;
  if (process_ != 0) return;
  ::setpgid(0, 0);  // Ctrl-C in the terminal is for the server, which then asks the training to end
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::setpriority(PRIO_PROCESS, 0, 10);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1}) ::dup2(nothing, standard);
  ::dup2(errors_ >= 0 ? errors_ : nothing, 2);
  ::execv(words[0], words.data());
  ::_exit(127);
}

bool Trainer::running() {
  if (process_ <= 0) return false;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) == 0) return true;
  process_ = -1;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  failed_ = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return false;
}

std::string Trainer::last_words() const {
  char text[4096];
  struct stat all {};
  if (errors_ < 0 || ::fstat(errors_, &all) != 0) return "";
  const off_t from = std::max<off_t>(0, all.st_size - static_cast<off_t>(sizeof text));
  const ssize_t got = ::pread(errors_, text, sizeof text, from);
  std::string last, line;
  std::istringstream lines(std::string(text, text + std::max<ssize_t>(got, 0)));
  while (std::getline(lines, line))
    if (line.starts_with(kError)) last = line.substr(kError.size());
  return last;
}

void Trainer::stop() {
  if (process_ <= 0) return;
  ::kill(process_, SIGTERM);
  for (int tenths = 0; tenths < 50 && running(); ++tenths) ::usleep(100'000);
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

}  // namespace qkv::serve
