// Sockets, and a thread that watches them.
#include "qkv/ranks/lifeline.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>
#include <vector>

#include "qkv/ranks/ranks.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kConnectSeconds = 2;  // for one address
constexpr char kAlive = 'a', kLeaves = 'l', kLost = 'x';

struct Greeting {
  uint64_t token = 0;
  int32_t rank = -1;
};

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// The addresses of this machine, those of the loopback last.
std::string own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "127.0.0.1";
  std::string far, near;
  for (const ifaddrs* a = list; a; a = a->ifa_next) {
    if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP)) continue;
    char name[INET_ADDRSTRLEN];
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr, name, sizeof name);
    ((a->ifa_flags & IFF_LOOPBACK) ? near : far) += std::string(name) + " ";
  }
  ::freeifaddrs(list);
  return far + near;
}

bool ready(int socket, short events, double seconds) {
  pollfd one{socket, events, 0};
  return ::poll(&one, 1, static_cast<int>(seconds * 1000)) > 0 && (one.revents & events);
}

int connected(const std::string& address, uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return -1;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  int error = 0;
  socklen_t size = sizeof error;
  const bool begun = ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS;
  if (begun && ready(socket, POLLOUT, kConnectSeconds) &&
      ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
    return socket;
  ::close(socket);
  return -1;
}

void say(int socket, char word) {
  [[maybe_unused]] const auto sent = ::send(socket, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

struct Lifeline::State {
  struct Peer {
    int rank = 0, socket = -1;
    Clock::time_point heard = Clock::now();
    bool left = false, gone = false;  // it said that it ends; and it has ended
  };
  Ranks& ranks;
  double timeout;
  Events events;
  std::vector<Peer> peers = {};  // of rank 0: all others that could connect; of others: rank 0
  int wake[2] = {-1, -1};        // a pipe that ends the thread
  std::thread thread = {};

  void open_door();
  void connect_to(const std::string& door);
  void watch();
  bool listen_to(Peer& peer);
};

// Rank 0 waits until all others have connected, or ten seconds.
void Lifeline::State::open_door() {
  const int door = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof here;
  Greeting wanted;
  const bool open = door >= 0 && ::getrandom(&wanted.token, sizeof wanted.token, 0) == sizeof wanted.token &&
                    ::bind(door, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
                    ::listen(door, ranks.size()) == 0 &&
                    ::getsockname(door, reinterpret_cast<sockaddr*>(&here), &size) == 0;
  std::ostringstream text;
  if (open) text << wanted.token << ' ' << ntohs(here.sin_port) << ' ' << own_addresses();
  ranks.broadcast(text.str());
  const auto start = Clock::now();
  while (open && static_cast<int>(peers.size()) < ranks.size() - 1 && seconds_since(start) < 10) {
    if (!ready(door, POLLIN, 0.2)) continue;
    const int socket = ::accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
    Greeting greeting;
    const timeval patience{1, 0};
    if (socket >= 0) ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (socket >= 0 && ready(socket, POLLIN, 1) &&
        ::recv(socket, &greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting && greeting.token == wanted.token &&
        greeting.rank > 0 && greeting.rank < ranks.size())
      peers.push_back({.rank = greeting.rank, .socket = socket});
    else if (socket >= 0)
      ::close(socket);
  }
  if (door >= 0) ::close(door);
}

void Lifeline::State::connect_to(const std::string& door) {
  std::istringstream words(door);
  Greeting greeting;
  uint16_t port = 0;
  words >> greeting.token >> port;
  greeting.rank = ranks.rank();
  for (std::string address; words >> address;) {
    const int socket = connected(address, port);
    if (socket < 0) continue;
    const int flags = ::fcntl(socket, F_GETFL);
    ::fcntl(socket, F_SETFL, flags & ~O_NONBLOCK);
    if (::send(socket, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting) {
      peers.push_back({.rank = 0, .socket = socket});
      return;
    }
    ::close(socket);
  }
}

// What a peer has said; false if it is lost.
bool Lifeline::State::listen_to(Peer& peer) {
  char words[64];
  const auto count = ::recv(peer.socket, words, sizeof words, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  const bool closed = count == 0 || (count < 0 && (errno == ECONNRESET || errno == EPIPE));
  if (count <= 0) {
    if (peer.left) {
      peer.gone = true;
      return true;
    }
    events.lost(peer.rank, closed);
    return false;
  }
  peer.heard = Clock::now();
  for (ssize_t i = 0; i < count; ++i) {
    if (words[i] == kLeaves) peer.left = true;
    if (words[i] == kLost) {
      events.quiet();
      return false;
    }
    if (words[i] == kAlive && ranks.rank() != 0) say(peer.socket, kAlive);
  }
  return true;
}

void Lifeline::State::watch() {
  const double tick = std::clamp(timeout / 10, 0.05, 1.0), limit = std::max(timeout - 5 * tick, 0.75 * timeout);
  auto asked = Clock::now();
  for (Peer& peer : peers) peer.heard = asked;
  for (;;) {
    std::vector<pollfd> all{{wake[0], POLLIN, 0}};
    for (const Peer& peer : peers) all.push_back({peer.gone ? -1 : peer.socket, POLLIN, 0});
    ::poll(all.data(), all.size(), static_cast<int>(tick * 1000));
    if (all[0].revents) return;
    for (size_t i = 0; i < peers.size(); ++i)
      if (all[i + 1].revents && !listen_to(peers[i])) return;
    const bool ask = ranks.rank() == 0 && seconds_since(asked) >= tick;
    if (ask) asked = Clock::now();
    for (Peer& peer : peers) {
      if (peer.left) continue;
      if (ask) say(peer.socket, kAlive);
      if (seconds_since(peer.heard) < limit) continue;
      events.lost(peer.rank, false);
      return;
    }
  }
}

Lifeline::Lifeline(Ranks& ranks, double timeout, Events events)
    : state_(new State{.ranks = ranks, .timeout = timeout, .events = std::move(events)}) {
  if (ranks.rank() == 0)
    state_->open_door();
  else
    state_->connect_to(ranks.broadcast(std::string()));
  if (::pipe2(state_->wake, O_CLOEXEC) != 0) return;
  state_->thread = std::thread([this] { state_->watch(); });
}

Lifeline::~Lifeline() {
  leave();
  if (state_->thread.joinable()) {
    [[maybe_unused]] const auto written = ::write(state_->wake[1], "", 1);
    state_->thread.join();
  }
  for (const State::Peer& peer : state_->peers) ::close(peer.socket);
  for (const int end : state_->wake)
    if (end >= 0) ::close(end);
}

void Lifeline::end_job() {
  for (const State::Peer& peer : state_->peers) say(peer.socket, kLost);
}

void Lifeline::leave() {
  for (const State::Peer& peer : state_->peers) say(peer.socket, kLeaves);
}

}  // namespace qkv
