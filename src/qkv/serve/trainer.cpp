// fork, then only calls that are safe between fork and exec.
#include "qkv/serve/trainer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace qkv::serve {

void Trainer::start(std::vector<std::string> command) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  failed_ = process_ < 0;
  if (process_ != 0) return;
  ::setpgid(0, 0);  // Ctrl-C in the terminal is for the server, which then asks the training to end
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::setpriority(PRIO_PROCESS, 0, 10);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(nothing, standard);
  ::execv(words[0], words.data());
  ::_exit(127);
}

bool Trainer::running() {
  if (process_ <= 0) return false;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) == 0) return true;
  process_ = -1;
  failed_ = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return false;
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
