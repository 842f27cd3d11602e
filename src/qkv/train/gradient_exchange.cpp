// The states of a chunk: ready, sent to its owner, summed there, received by all.
#include "qkv/train/gradient_exchange.h"

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/kernels/elementwise.h"

namespace qkv {

GradientExchange::GradientExchange(Ranks& ranks, int64_t floats)
    : ranks_(ranks),
      floats_(floats),
      chunk_(std::clamp<int64_t>((floats + 16 * ranks.size() - 1) / (16 * ranks.size()) * 16, 16, kChunk)),
      chunks_(static_cast<size_t>((floats + chunk_ - 1) / chunk_)),
      operands_(chunks_.size()) {}

int64_t GradientExchange::length_of(int64_t chunk) const { return std::min(chunk_, floats_ - begin_of(chunk)); }

int64_t GradientExchange::floats_sent(const UpdatePlan& plan) const {
  const auto [first, last] = plan.pieces_of(ranks_.rank());
  int64_t sent = 0;
  for (int64_t c = 0; c < std::ssize(chunks_); ++c)
    sent += length_of(c) * (owner_of(c) == ranks_.rank() ? ranks_.size() - 1 : last - first);
  return sent;
}

void GradientExchange::begin(const UpdatePlan& plan, std::vector<float*> pieces, float* result) {
  ranks_.locked([&] {
    plan_ = plan;
    own_ = std::move(pieces);
    result_ = result;
    left_ = std::ssize(chunks_);
    arrived_at_ = 0;
    const auto [first, last] = plan_.pieces_of(ranks_.rank());
    int64_t owned = 0;
    for (int64_t c = 0; c < std::ssize(chunks_); ++c)
      if (owner_of(c) == ranks_.rank()) owned += length_of(c);
    const auto others = static_cast<int64_t>(plan_.pieces().size()) - (last - first);
    if (std::ssize(arrived_) < owned * others) arrived_.resize(static_cast<size_t>(owned * others));
    for (int64_t c = 0; c < std::ssize(chunks_); ++c) {
      chunks_[static_cast<size_t>(c)] = {.unready = length_of(c)};
      if (owner_of(c) == ranks_.rank())
        post_arriving(c);
      else if (own_.empty())
        receive_sum(c);
    }
    if (own_.empty()) all_ready();
  });
}

// The owner of a chunk gets the pieces of the others. The only piece of all goes where the sum belongs.
void GradientExchange::post_arriving(int64_t chunk) {
  Chunk& state = chunks_[static_cast<size_t>(chunk)];
  std::vector<float*>& operands = operands_[static_cast<size_t>(chunk)];
  operands.assign(plan_.pieces().size(), nullptr);
  const auto [first, last] = plan_.pieces_of(ranks_.rank());
  const auto count = static_cast<size_t>(length_of(chunk));
  for (int64_t i = 0; i < std::ssize(operands); ++i) {
    float*& operand = operands[static_cast<size_t>(i)];
    if (i >= first && i < last) {
      operand = own_[static_cast<size_t>(i - first)] + begin_of(chunk);
      continue;
    }
    if (operands.size() == 1) {
      operand = result_ + begin_of(chunk);
    } else {
      operand = arrived_.data() + arrived_at_;
      arrived_at_ += length_of(chunk);
    }
    ++state.arriving;
    ranks_.receive(operand, count * sizeof(float), plan_.pieces()[static_cast<size_t>(i)].rank,
                   Ranks::kFirstTag + 2 * static_cast<int>(chunk), [this, chunk] {
                     --chunks_[static_cast<size_t>(chunk)].arriving;
                     sum_if_complete(chunk);
                   });
  }
}

void GradientExchange::ready(int64_t begin, int64_t end) {
  if (begin >= end) return;
  ranks_.locked([&] {
    for (int64_t c = begin / chunk_; c < std::ssize(chunks_) && begin_of(c) < end; ++c) {
      Chunk& state = chunks_[static_cast<size_t>(c)];
      const int64_t from = std::max(begin, begin_of(c)), to = std::min(end, begin_of(c) + length_of(c));
      const bool was_ready = state.unready == 0;
      state.unready -= to - from;
      if (state.unready > 0 || was_ready) continue;
      if (owner_of(c) == ranks_.rank())
        sum_if_complete(c);
      else
        send_to_owner(c);
    }
  });
}

void GradientExchange::all_ready() {
  ranks_.locked([&] {
    for (int64_t c = 0; c < std::ssize(chunks_); ++c) {
      const int64_t unready = chunks_[static_cast<size_t>(c)].unready;
      if (unready > 0) ready(begin_of(c) + length_of(c) - unready, begin_of(c) + length_of(c));
    }
  });
}

void GradientExchange::send_to_owner(int64_t chunk) {
  chunks_[static_cast<size_t>(chunk)].leaving = static_cast<int>(own_.size());
  for (const float* piece : own_)
    ranks_.send(piece + begin_of(chunk), static_cast<size_t>(length_of(chunk)) * sizeof(float), owner_of(chunk),
                Ranks::kFirstTag + 2 * static_cast<int>(chunk), [this, chunk] {
                  if (--chunks_[static_cast<size_t>(chunk)].leaving == 0) receive_sum(chunk);
                });
}

// The sum overwrites a piece, which has left by now.
void GradientExchange::receive_sum(int64_t chunk) {
  ranks_.receive(result_ + begin_of(chunk), static_cast<size_t>(length_of(chunk)) * sizeof(float), owner_of(chunk),
                 Ranks::kFirstTag + 2 * static_cast<int>(chunk) + 1, [this, chunk] { finish(chunk); });
}

void GradientExchange::sum_if_complete(int64_t chunk) {
  Chunk& state = chunks_[static_cast<size_t>(chunk)];
  if (state.unready > 0 || state.arriving > 0) return;
  flush_denormals();  // as in every other sum
  const std::vector<float*>& operands = operands_[static_cast<size_t>(chunk)];
  float* sum = result_ + begin_of(chunk);
  const int64_t count = length_of(chunk);
  for (size_t i = 0; i < plan_.joins().size(); ++i) {
    const auto [to, from] = plan_.joins()[i];
    float* left = operands[static_cast<size_t>(to)];
    const bool last = i + 1 == plan_.joins().size();
    kernels::add(left, operands[static_cast<size_t>(from)], last ? sum : left, count);
  }
  if (plan_.joins().empty() && operands[0] != sum) std::copy_n(operands[0], count, sum);
  state.leaving = ranks_.size() - 1;
  for (int r = 0; r < ranks_.size(); ++r)
    if (r != ranks_.rank())
      ranks_.send(sum, static_cast<size_t>(count) * sizeof(float), r,
                  Ranks::kFirstTag + 2 * static_cast<int>(chunk) + 1, [this, chunk] {
                    if (--chunks_[static_cast<size_t>(chunk)].leaving == 0) finish(chunk);
                  });
  if (ranks_.size() == 1) finish(chunk);
}

void GradientExchange::finish(int64_t chunk) {
  chunks_[static_cast<size_t>(chunk)].done = true;
  --left_;
}

void GradientExchange::wait() {
  ranks_.wait([this] { return left_ == 0; });
}

}  // namespace qkv
