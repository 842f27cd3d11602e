// Messages with functions that are called when they are done, and the collective calls made of them.
#include "qkv/ranks/ranks.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "qkv/core/parallel.h"
#include "qkv/ranks/lifeline.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeadTag = 1, kRestTag = 2, kCopyTag = 3;
constexpr size_t kHead = 512;         // bytes of the first message of a gather
constexpr size_t kMessage = 1 << 20;  // of a long one
constexpr uint64_t kFailed = 1ull << 63;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// The first message: a length and the beginning of the text.
struct Head {
  uint64_t length = 0;
  char text[kHead - sizeof(uint64_t)] = {};
  static constexpr size_t kInline = sizeof(text);
};

void pause_for(int64_t microseconds) {
  const timespec time{0, microseconds * 1000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

struct Ranks::State {
  std::unique_ptr<Link> link;
  RankOptions options;
  int rank = 0, size = 1;
  std::vector<std::string> hosts;
  Text place;
  std::recursive_mutex mutex;  // of the link and everything below; functions called under it may post messages
  struct Message {
    Done done;
    int from = -1;  // of a message to receive
  };
  std::map<int, Message> open;
  std::atomic<uint64_t> sent = 0, received = 0;
  std::atomic<int64_t> news = 0;  // messages that have finished
  std::unique_ptr<Lifeline> lifeline;
  std::thread helper;
  std::mutex helper_mutex;
  std::condition_variable_any helper_wakes;
  bool helping = false, ending = false;
  std::atomic<bool> lost_already = false;

  void post(int ticket, Done done, int from) {
    require(ticket >= 0, "MPI refused a message");
    open.emplace(ticket, Message{std::move(done), from});
  }
  bool poll();
  void help();
  void lose(const Text& message, bool say);
  void timed_out();
  std::vector<int> missing();
  // This rank ends, because it or another one has failed; what is open is never finished.
  void leave() {
    std::unique_lock lock(mutex);
    for (auto& [ticket, message] : open) message.done = nullptr;
    link->abandon();
    if (lifeline) lifeline->leave();
  }
  struct Gathering;
  static void read_head(Ranks& ranks, Gathering& g, int from);
};

bool Ranks::State::poll() {
  std::unique_lock lock(mutex);
  int tickets[64];
  const size_t count = link->finished(tickets, std::size(tickets));
  // The functions may post messages, which may get tickets that have just become free.
  Done done[std::size(tickets)];
  for (size_t i = 0; i < count; ++i) done[i] = std::move(open.extract(tickets[i]).mapped().done);
  news += static_cast<int64_t>(count);
  for (size_t i = 0; i < count; ++i)
    if (done[i]) done[i]();
  return count > 0;
}

// The other thread: moves messages while the caller computes.
void Ranks::State::help() {
  flush_denormals();  // sums are made here as well
  int64_t pause = 20;
  for (;;) {
    {
      std::unique_lock lock(helper_mutex);
      helper_wakes.wait(lock, [&] { return helping || ending; });
      if (ending) return;
    }
    pause = poll() ? 20 : std::min<int64_t>(2 * pause, 200);
    pause_for(pause);
  }
}

std::vector<int> Ranks::State::missing() {
  std::vector<int> ranks;
  std::unique_lock lock(mutex);
  for (const auto& [ticket, message] : open)
    if (message.from >= 0) ranks.push_back(message.from);
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void Ranks::State::lose(const Text& message, bool say) {
  if (lost_already.exchange(true)) return;
  if (lifeline && (say || rank == 0)) lifeline->end_job();
  link->abandon();
  if (options.lost) options.lost(message, say);
}

// The lowest rank that is not missing itself reports what it waits for.
void Ranks::State::timed_out() {
  const std::vector<int> ranks = missing();
  int reporter = 0;
  while (std::ranges::count(ranks, reporter) > 0) ++reporter;
  Text names;
  for (const int r : ranks) {
    const Text name = tr("rank {rank} on {host}", "rank"_a = r, "host"_a = hosts[static_cast<size_t>(r)]);
    names = names.empty() ? name : tr("{list}, {next}", "list"_a = names, "next"_a = name);
  }
  if (rank != reporter) pause_for(900'000);
  lose(tr("nothing arrived from {ranks} for {seconds:.0f} s, at {place}; the job ends, and the same command resumes it",
          "ranks"_a = names, "seconds"_a = options.timeout, "place"_a = place),
       rank == reporter);
}

Ranks::Ranks(std::unique_ptr<Link> link, const RankOptions& options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.link = std::move(link);
  s.options = options;
  s.rank = s.link->rank();
  s.size = s.link->size();
  s.place = tr("the start");
  s.hosts.assign(static_cast<size_t>(s.size), "?");
  s.hosts = gather(s.link->host());
  if (s.size == 1) return;
  if (options.lost) {
    const auto lost = [this](int lost_rank, bool died) {
      State& state = *state_;
      const std::string& host = state.hosts[static_cast<size_t>(lost_rank)];
      state.lose(died ? tr("rank {rank} on {host} died, at {place}; the job ends, and the same command resumes it",
                           "rank"_a = lost_rank, "host"_a = host, "place"_a = state.place)
                      : tr("rank {rank} on {host} has not answered for {seconds:.0f} s, at {place}; the job ends, and "
                           "the same command resumes it",
                           "rank"_a = lost_rank, "host"_a = host, "seconds"_a = state.options.timeout,
                           "place"_a = state.place),
                 state.rank <= 1);
    };
    const auto quiet = [this] { state_->lose(Text(), false); };
    s.lifeline = std::make_unique<Lifeline>(*this, options.timeout, Lifeline::Events{lost, quiet});
  }
  s.helper = std::thread([this] { state_->help(); });
}

Ranks::~Ranks() {
  State& s = *state_;
  s.lifeline.reset();
  {
    std::unique_lock lock(s.helper_mutex);
    s.ending = true;
  }
  s.helper_wakes.notify_all();
  if (s.helper.joinable()) s.helper.join();
}

int Ranks::rank() const { return state_->rank; }
int Ranks::size() const { return state_->size; }
const std::string& Ranks::host(int rank) const { return state_->hosts[static_cast<size_t>(rank)]; }
std::string Ranks::library() const { return state_->link->library(); }
Text Ranks::name(int rank) const { return tr("rank {rank} on {host}", "rank"_a = rank, "host"_a = host(rank)); }
void Ranks::set_place(Text place) {
  std::unique_lock lock(state_->mutex);
  state_->place = std::move(place);
}
uint64_t Ranks::bytes_sent() const { return state_->sent; }
uint64_t Ranks::bytes_received() const { return state_->received; }

void Ranks::send(const void* data, size_t bytes, int to, int tag, Done done) {
  std::unique_lock lock(state_->mutex);
  state_->sent += bytes;
  state_->post(state_->link->send(data, bytes, to, tag), std::move(done), -1);
}

void Ranks::receive(void* data, size_t bytes, int from, int tag, Done done) {
  std::unique_lock lock(state_->mutex);
  state_->received += bytes;
  state_->post(state_->link->receive(data, bytes, from, tag), std::move(done), from);
}

void Ranks::locked(const std::function<void()>& work) {
  std::unique_lock lock(state_->mutex);
  work();
}

void Ranks::wait(const std::function<bool()>& finished) {
  State& s = *state_;
  const auto done = [&] {
    std::unique_lock lock(s.mutex);
    return finished();
  };
  auto last = Clock::now();
  int64_t news = s.news, idle = 0, pause = 10;
  while (!done()) {
    s.poll();
    if (s.news != news) {
      news = s.news;
      idle = 0;
      pause = 10;
      last = Clock::now();
      continue;
    }
    // Messages of small models arrive within microseconds; cores that others need are left to them.
    if (++idle < 50) {
      ::sched_yield();
      continue;
    }
    pause_for(pause);
    pause = std::min<int64_t>(pause + pause / 2, 200);
    if (seconds_since(last) > s.options.timeout) {
      s.timed_out();
      refuse("the job is lost");  // where nobody ends the process
    }
  }
}

// What the messages of a gather refer to. It outlives the call if that fails.
struct Ranks::State::Gathering {
  std::vector<std::string> all;
  std::vector<Head> in;
  Head out;
  int64_t left = 0;
  int failed = -1;
};

// The first message of a rank has arrived: its text is complete, continues in other messages, or says that it failed.
void Ranks::State::read_head(Ranks& ranks, Gathering& g, int from) {
  Head& head = g.in[static_cast<size_t>(from)];
  std::string& whole = g.all[static_cast<size_t>(from)];
  if (head.length & kFailed) {
    if (g.failed < 0) g.failed = from;
    whole.assign(head.text, std::min<size_t>(head.length & ~kFailed, Head::kInline));
    return;
  }
  whole.resize(head.length);
  std::memcpy(whole.data(), head.text, std::min(whole.size(), Head::kInline));
  for (size_t at = Head::kInline; at < whole.size(); at += kMessage) {
    ++g.left;
    ranks.receive(whole.data() + at, std::min(kMessage, whole.size() - at), from, kRestTag, [&g] { --g.left; });
  }
}

std::vector<std::string> Ranks::gather(const std::string& own) {
  State& s = *state_;
  auto g = std::make_unique<State::Gathering>();
  g->all.resize(static_cast<size_t>(s.size));
  g->all[static_cast<size_t>(s.rank)] = own;
  if (s.size == 1) return g->all;
  const std::string& text = g->all[static_cast<size_t>(s.rank)];
  g->in.resize(g->all.size());
  g->out.length = text.size();
  std::memcpy(g->out.text, text.data(), std::min(text.size(), Head::kInline));
  const auto one_less = [g = g.get()] { --g->left; };
  locked([&] {
    for (int r = 0; r < s.size; ++r) {
      if (r == s.rank) continue;
      g->left += 2;
      receive(&g->in[static_cast<size_t>(r)], sizeof(Head), r, kHeadTag, [this, r, g = g.get()] {
        --g->left;
        State::read_head(*this, *g, r);
      });
      send(&g->out, sizeof(Head), r, kHeadTag, one_less);
      for (size_t at = Head::kInline; at < text.size(); at += kMessage) {
        ++g->left;
        send(text.data() + at, std::min(kMessage, text.size() - at), r, kRestTag, one_less);
      }
    }
  });
  wait([&] { return g->left == 0 || g->failed >= 0; });
  if (g->failed < 0) return std::move(g->all);
  s.leave();
  const State::Gathering& kept = *g.release();  // messages that are still open refer to it
  throw RankFailed(kept.failed, tr("{rank} has failed: {message}", "rank"_a = name(kept.failed),
                                   "message"_a = kept.all[static_cast<size_t>(kept.failed)]));
}

void Ranks::broadcast(std::span<std::byte> bytes) {
  State& s = *state_;
  int64_t left = 0;
  locked([&] {
    const auto move = [&](int other) {
      for (size_t at = 0; at < bytes.size(); at += kMessage) {
        const size_t count = std::min(kMessage, bytes.size() - at);
        ++left;
        if (s.rank == 0)
          send(bytes.data() + at, count, other, kCopyTag, [&] { --left; });
        else
          receive(bytes.data() + at, count, 0, kCopyTag, [&] { --left; });
      }
    };
    if (s.rank != 0) return move(0);
    for (int r = 1; r < s.size; ++r) move(r);
  });
  wait([&] { return left == 0; });
}

std::string Ranks::broadcast(const std::string& text) { return gather(state_->rank == 0 ? text : std::string())[0]; }

bool Ranks::fail(const std::string& message) {
  State& s = *state_;
  if (s.size == 1) return true;
  const std::string cut = message.substr(0, Head::kInline);
  auto* g = new State::Gathering;  // the process ends soon, and messages may still be open then
  g->in.resize(static_cast<size_t>(s.size));
  g->out.length = cut.size() | kFailed;
  std::memcpy(g->out.text, cut.data(), cut.size());
  bool said = false;
  locked([&] {
    // What is open belongs to calls that have ended.
    for (auto& [ticket, open] : s.open) open.done = nullptr;
    for (int r = 0; r < s.size; ++r) {
      if (r == s.rank) continue;
      ++g->left;
      send(&g->out, sizeof(Head), r, kHeadTag, [g] { --g->left; });
      if (r < s.rank) receive(&g->in[static_cast<size_t>(r)], sizeof(Head), r, kHeadTag, {});
    }
  });
  const auto start = Clock::now();
  while ((g->left > 0 || (!said && s.rank > 0)) && seconds_since(start) < 1) {
    s.poll();
    for (int r = 0; r < s.rank; ++r) {
      const Head& head = g->in[static_cast<size_t>(r)];
      said |= (head.length & kFailed) && std::string(head.text, head.length & ~kFailed) == cut;
    }
    pause_for(100);
  }
  s.leave();
  return !said;
}

Ranks::Background::Background(Ranks& ranks) : ranks_(ranks) {
  std::unique_lock lock(ranks_.state_->helper_mutex);
  ranks_.state_->helping = true;
  ranks_.state_->helper_wakes.notify_all();
}
Ranks::Background::~Background() {
  std::unique_lock lock(ranks_.state_->helper_mutex);
  ranks_.state_->helping = false;
}

std::vector<double> shared_rows(Ranks* ranks, int64_t items, int64_t width,
                                const std::function<void(int64_t i, double* row)>& compute) {
  std::vector<double> all(static_cast<size_t>(items * width));
  const RankShare mine = ranks ? RankShare::of(items, ranks->rank(), ranks->size()) : RankShare{0, items};
  for (int64_t i = mine.begin; i < mine.end; ++i) compute(i, all.data() + i * width);
  if (!ranks || ranks->size() == 1) return all;
  const auto bytes = [&](RankShare share) {
    return static_cast<size_t>((share.end - share.begin) * width) * sizeof(double);
  };
  std::string own(bytes(mine), '\0');
  if (!own.empty()) std::memcpy(own.data(), all.data() + mine.begin * width, own.size());
  const std::vector<std::string> parts = ranks->gather(own);
  for (int r = 0; r < ranks->size(); ++r) {
    const RankShare share = RankShare::of(items, r, ranks->size());
    const std::string& part = parts[static_cast<size_t>(r)];
    check(part.size() == bytes(share), "[ranks] rank ", r, " sent ", part.size(), " bytes, expected ", bytes(share));
    if (!part.empty()) std::memcpy(all.data() + share.begin * width, part.data(), part.size());
  }
  return all;
}

std::vector<std::string> shared_texts(
    Ranks* ranks, int64_t items, const std::function<std::vector<std::string>(int64_t begin, int64_t end)>& compute) {
  if (!ranks || ranks->size() == 1) return compute(0, items);
  const RankShare mine = RankShare::of(items, ranks->rank(), ranks->size());
  std::string own;
  for (const std::string& text : compute(mine.begin, mine.end)) {
    const uint64_t length = text.size();
    own.append(reinterpret_cast<const char*>(&length), sizeof length);
    own += text;
  }
  std::vector<std::string> all;
  for (const std::string& part : ranks->gather(own))
    for (size_t at = 0; at < part.size();) {
      uint64_t length = 0;
      std::memcpy(&length, part.data() + at, sizeof length);
      all.push_back(part.substr(at + sizeof length, length));
      at += sizeof length + length;
    }
  return all;
}

}  // namespace qkv
