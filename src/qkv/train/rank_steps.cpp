// One message per rank and step with losses and what else all must know; the gradients travel on their own.
#include "qkv/train/rank_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "qkv/train/optimizer.h"

namespace qkv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void append(std::string& out, const auto& value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

// Reads values and texts from a message.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  bool done() const { return at_ >= text_.size(); }
  template <class T>
  T value() {
    check(at_ + sizeof(T) <= text_.size(), "[ranks] a message of ", text_.size(), " bytes is too short");
    T out;
    std::memcpy(&out, text_.data() + at_, sizeof out);
    at_ += sizeof out;
    return out;
  }
  std::string string() {
    const auto length = value<uint64_t>();
    check(length <= text_.size() - at_, "[ranks] a message of ", text_.size(), " bytes is too short");
    at_ += length;
    return text_.substr(at_ - length, length);
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
};

void append_text(std::string& out, const std::string& text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

}  // namespace

struct RankSteps::Word {
  int64_t step;
  uint64_t weight_norm;  // bits
  double seconds;
  RankTimes times;
  int32_t stops, pieces;
};

RankSteps::RankSteps(Ranks& ranks, const Parameters& parameters)
    : ranks_(ranks),
      exchange_(std::make_shared<GradientExchange>(ranks, parameters.flat().numel())),
      weight_norm_(norm(parameters.flat())),
      all_times_(static_cast<size_t>(ranks.size())) {}

// Messages that are under way when a step fails still refer to their memory while this rank tells the others.
RankSteps::~RankSteps() {
  background_.reset();
  if (under_way_.empty()) return;
  ranks_.keep(std::make_shared<std::vector<Tensor>>(std::move(under_way_)));
  ranks_.keep(exchange_);
}

void RankSteps::begin_exchange(const Shards& shards) {
  under_way_ = shards.piece_gradients();
  std::vector<float*> pieces;
  for (Tensor& piece : under_way_) pieces.push_back(piece.mutable_ptr());
  under_way_.push_back(shards.gradient());
  exchange_->begin(plan_, std::move(pieces), under_way_.back().mutable_ptr());
}

void RankSteps::begin(Shards& shards, std::span<const int64_t> batch_rows, int64_t step) {
  step_ = step;
  ranks_.set_place(tr("step {step}", "step"_a = step + 1));
  UpdatePlan plan(shards.counts(batch_rows), ranks_.size());
  if (!(plan == plan_)) plan_ = std::move(plan);
  const auto [first, last] = plan_.pieces_of(ranks_.rank());
  overlaps_ = last - first == 1 &&
              plan_.pieces()[static_cast<size_t>(first)].end - plan_.pieces()[static_cast<size_t>(first)].begin == 1;
  shards.begin(plan_, ranks_.rank(), overlaps_ ? exchange_.get() : nullptr);
  if (!overlaps_) return;
  begin_exchange(shards);
  background_.emplace(ranks_);
}

BatchLoss RankSteps::finish(Shards& shards, bool stops) {
  if (!overlaps_) begin_exchange(shards);
  exchange_->all_ready();
  background_.reset();
  const auto computed = Clock::now();
  const std::vector<BatchLoss> losses = shards.piece_losses();
  std::string own;
  append(own, Word{step_, std::bit_cast<uint64_t>(weight_norm_), own_seconds_, times_, stops ? 1 : 0,
                   static_cast<int32_t>(losses.size())});
  for (const BatchLoss& loss : losses) append(own, loss);
  read_words(ranks_.gather(own));
  const auto arrived = Clock::now();
  exchange_->wait();
  under_way_.clear();
  const auto done = Clock::now();
  times_.compute += seconds_between(last_, computed);
  times_.wait += seconds_between(computed, arrived);
  times_.communicate += seconds_between(arrived, done);
  last_ = done;
  for (const auto [to, from] : plan_.joins()) losses_[static_cast<size_t>(to)].add(losses_[static_cast<size_t>(from)]);
  return losses_.front();
}

void RankSteps::read_words(const std::vector<std::string>& words) {
  losses_.clear();
  stops_ = false;
  uint64_t weights_of_first = 0;
  for (int r = 0; r < ranks_.size(); ++r) {
    Reader reader(words[static_cast<size_t>(r)]);
    const Word word = reader.value<Word>();
    if (r == 0) {
      seconds_ = word.seconds;
      weights_of_first = word.weight_norm;
    }
    check(word.step == step_, "[ranks] rank ", r, " is at step ", word.step + 1, ", this one at ", step_ + 1);
    if (word.weight_norm != weights_of_first)
      throw Error(tr("{rank} has other weights than {first} before step {step}: the machines do not compute the same",
                     "rank"_a = ranks_.name(r), "first"_a = ranks_.name(0), "step"_a = step_ + 1),
                  tr("the last checkpoint is intact; faulty memory is a common cause"));
    stops_ |= word.stops != 0;
    all_times_[static_cast<size_t>(r)] = word.times;
    for (int32_t i = 0; i < word.pieces; ++i) losses_.push_back(reader.value<BatchLoss>());
  }
  check(losses_.size() == plan_.pieces().size(), "[ranks] ", losses_.size(), " losses, expected ",
        plan_.pieces().size());
}

void RankSteps::updated(double weight_norm, double seconds) {
  weight_norm_ = weight_norm;
  own_seconds_ = seconds;
}

void RankSteps::report(Progress& progress) const {
  const auto slowest = std::ranges::max_element(all_times_, {}, &RankTimes::compute);
  progress.ranks = ranks_.size();
  progress.slowest_rank = static_cast<int>(slowest - all_times_.begin());
  progress.slowest_share = slowest->sum() > 0 ? slowest->compute / slowest->sum() : 1;
}

std::optional<Checkpoint> shared_checkpoint(Ranks& ranks, std::optional<Checkpoint> own) {
  std::string head;
  if (own) {
    append_text(head, own->file);
    append(head, static_cast<uint64_t>(own->counters.size()));
    for (const auto& [name, value] : own->counters) {
      append_text(head, name);
      append_text(head, value);
    }
    for (const auto& [name, tensor] : own->tensors) {
      append_text(head, name);
      append(head, static_cast<int64_t>(tensor.rank()));
      for (int i = 0; i < tensor.rank(); ++i) append(head, tensor.size(i));
    }
  }
  const std::string received = ranks.broadcast(head);
  if (received.empty()) return {};
  if (ranks.rank() != 0) {
    own.emplace();
    Reader reader(received);
    own->file = reader.string();
    for (auto left = reader.value<uint64_t>(); left > 0; --left) {
      const std::string name = reader.string();
      own->counters[name] = reader.string();
    }
    while (!reader.done()) {
      const std::string name = reader.string();
      std::vector<int64_t> sizes(static_cast<size_t>(reader.value<int64_t>()));
      for (int64_t& size : sizes) size = reader.value<int64_t>();
      own->tensors[name] = Tensor::empty(Shape(std::span<const int64_t>(sizes)));
    }
  }
  for (auto& [name, tensor] : own->tensors)
    ranks.broadcast(
        std::as_writable_bytes(std::span(const_cast<float*>(tensor.ptr()), static_cast<size_t>(tensor.numel()))));
  return own;
}

}  // namespace qkv
