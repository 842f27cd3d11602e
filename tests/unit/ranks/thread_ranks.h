// Ranks that are threads of one process, for tests without MPI.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "qkv/ranks/ranks.h"

namespace qkv::tests {

/// The messages that are under way between the threads.
struct Mail {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, std::deque<std::string>> boxes;  // from, to, tag
};

class ThreadLink : public Link {
 public:
  ThreadLink(std::shared_ptr<Mail> mail, int rank, int size) : mail_(std::move(mail)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return "thread" + std::to_string(rank_); }
  std::string library() const override { return "threads"; }
  int send(const void* data, size_t bytes, int to, int tag) override {
    std::lock_guard lock(mail_->mutex);
    mail_->boxes[{rank_, to, tag}].emplace_back(static_cast<const char*>(data), bytes);
    done_.push_back(ticket());
    return done_.back();
  }
  int receive(void* data, size_t bytes, int from, int tag) override {
    wanted_.push_back({ticket(), data, bytes, {from, rank_, tag}});
    return wanted_.back().ticket;
  }
  size_t finished(int* tickets, size_t most) override {
    {
      std::lock_guard lock(mail_->mutex);
      for (auto one = wanted_.begin(); one != wanted_.end();) {
        auto& box = mail_->boxes[one->box];
        if (box.empty()) {
          ++one;
          continue;
        }
        check(box.front().size() == one->bytes, "a message of ", box.front().size(), " bytes, expected ", one->bytes);
        std::memcpy(one->data, box.front().data(), one->bytes);
        box.pop_front();
        done_.push_back(one->ticket);
        one = wanted_.erase(one);
      }
    }
    size_t count = 0;
    for (; count < most && !done_.empty(); done_.pop_front()) {
      free_.push_back(done_.front());
      tickets[count++] = done_.front();
    }
    return count;
  }
  void abandon() override {}

 private:
  // Tickets are used again as soon as they are reported, as MPI's are.
  int ticket() {
    if (free_.empty()) return next_++;
    const int again = free_.back();
    free_.pop_back();
    return again;
  }
  struct Wanted {
    int ticket;
    void* data;
    size_t bytes;
    std::tuple<int, int, int> box;
  };
  std::shared_ptr<Mail> mail_;
  int rank_, size_, next_ = 0;
  std::deque<int> done_;
  std::vector<int> free_;
  std::deque<Wanted> wanted_;
};

/// Runs work(ranks) on every rank; what one of them throws is thrown again, that of the lowest rank first.
template <class Work>
void on_ranks(int size, const Work& work, double timeout = 60) {
  const auto mail = std::make_shared<Mail>();
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        Ranks ranks(std::make_unique<ThreadLink>(mail, r, size), {.timeout = timeout});
        work(ranks);
      } catch (...) {
        errors[static_cast<size_t>(r)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace qkv::tests
