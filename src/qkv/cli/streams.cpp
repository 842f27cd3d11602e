// Opens closed descriptors, and replaces standard error by a stream that drops what cannot be written.
#include "qkv/cli/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace qkv::cli {
namespace {

// Writing to a closed pipe raises SIGPIPE, which ends the program if the pipe is standard output. Here it is discarded.
class PipeSignalHeld {
 public:
  PipeSignalHeld() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalHeld() {
    const timespec now{};
    while (sigtimedwait(&pipe_, nullptr, &now) == -1 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

ssize_t write_or_drop(void*, const char* text, size_t size) {
  const PipeSignalHeld held;
  for (size_t done = 0; done < size;) {
    const ssize_t written = ::write(STDERR_FILENO, text + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void secure_streams() {
  // open() uses the lowest free number. Standard input cannot be read and the others cannot be written, as if they were
  // still closed.
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) == -1 && ::open("/dev/null", kModes[descriptor]) == -1) break;
  if (FILE* stream =
          ::fopencookie(nullptr, "w", {.read = nullptr, .write = write_or_drop, .seek = nullptr, .close = nullptr})) {
    std::setvbuf(stream, nullptr, _IONBF, 0);
    stderr = stream;  // a variable in the GNU C library: everything that prints there is covered, libraries included
  }
}

}  // namespace qkv::cli
