// The signal handler and its two flags.
#include "qkv/cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace qkv::cli {
namespace {

std::atomic<bool> can_stop = false, asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // else a signal handler could not touch them

void on_interrupt(int) {
  if (!can_stop || asked) ::_exit(kInterrupted);
  asked = true;
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

InterruptScope::InterruptScope() { can_stop = true; }
InterruptScope::~InterruptScope() { can_stop = false; }
const std::atomic<bool>& interrupted() { return asked; }

}  // namespace qkv::cli
