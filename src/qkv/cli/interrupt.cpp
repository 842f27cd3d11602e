// The signal handler and its two flags.
#include "qkv/cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace qkv::cli {
namespace {

volatile std::sig_atomic_t can_stop = 0, asked = 0;

void on_interrupt(int) {
  if (!can_stop || asked) ::_exit(kInterrupted);
  asked = 1;
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_interrupt;
    ::sigaction(signal, &action, nullptr);
  }
}

InterruptScope::InterruptScope() { can_stop = 1; }
InterruptScope::~InterruptScope() { can_stop = 0; }
bool interrupted() { return asked != 0; }

}  // namespace qkv::cli
