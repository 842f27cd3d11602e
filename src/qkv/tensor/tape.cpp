// The tape: nodes, slots and closures live in bump-allocated memory that comes from the thread's pool and is returned
// with the tape.
#include "qkv/tensor/tape.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "qkv/core/parallel.h"
#include "qkv/kernels/elementwise.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace detail {

struct Slot {
  Tensor grad;             // shape always set; defined once a gradient arrived
  float* fixed = nullptr;  // place in a GradArena, for leaves that have one
  Slot* previous = nullptr;
  bool touched = false;  // a gradient arrived at `fixed`
  uint32_t index = 0;    // in the arena
  uint32_t uses = 0;     // as an input of nodes whose pullbacks have not run
};

struct Node {
  Node* previous;
  const char* name;
  void (*pull)(void*, Pull&);
  void (*destroy)(void*);
  void* closure;
  int outputs, inputs;
  Slot* slots[];  // outputs, then inputs; null for an input that is a constant

  Slot** input_slots() { return slots + outputs; }
};

struct LeafEntry {
  uint32_t leaf;
  Slot* slot;
};

// A random stream that an op has drawn from.
struct Draw {
  const Draw* previous;
  const char* op;
  PhiloxKey key;
  uint32_t step, shard;
};

struct TapeState {
  static constexpr size_t kBlock = 1 << 16;
  Buffer block;  // the block being filled; it starts with the handle of the previous block
  std::byte* free = nullptr;
  std::byte* end = nullptr;
  Node* last = nullptr;
  Slot* slots = nullptr;
  LeafEntry* leaves = nullptr;  // open addressing; the capacity is a power of two
  uint32_t leaf_capacity = 0, leaf_count = 0;
  uint32_t serial = 0;
  int64_t length = 0;
  bool ran = false;
  GradArena* arena = nullptr;
  GradListener* listener = nullptr;
  const Draw* draws = nullptr;  // none unless they are checked

  void* take(size_t bytes) {
    bytes = (bytes + 15) & ~size_t{15};
    if (static_cast<size_t>(end - free) < bytes) new_block(bytes);
    void* memory = free;
    free += bytes;
    return memory;
  }

  void new_block(size_t bytes) {
    const size_t size = std::max(kBlock, bytes + 64) - 64;
    Buffer next = Buffer::take(size);
    new (next.data()) Buffer(std::move(block));
    block = std::move(next);
    free = block.data() + 16;
    end = block.data() + size;
  }

  Slot* new_slot(const Shape& shape);
  Slot* leaf_slot(const Tensor& leaf);
  LeafEntry* find(uint32_t leaf) const {
    uint32_t i = leaf * 2654435769u & (leaf_capacity - 1);
    while (leaves[i].leaf != 0 && leaves[i].leaf != leaf) i = (i + 1) & (leaf_capacity - 1);
    return &leaves[i];
  }
  void grow_leaves() {
    LeafEntry* old = leaves;
    const uint32_t old_capacity = leaf_capacity;
    leaf_capacity = std::max(16u, old_capacity * 4);
    leaves = static_cast<LeafEntry*>(take(leaf_capacity * sizeof(LeafEntry)));
    std::fill_n(leaves, leaf_capacity, LeafEntry{0, nullptr});
    for (uint32_t i = 0; i < old_capacity; ++i)
      if (old[i].leaf) *find(old[i].leaf) = old[i];
  }
};

Slot* TapeState::leaf_slot(const Tensor& leaf) {
  const uint32_t id = leaf.leaf_id();
  if (leaf_capacity) {
    LeafEntry* entry = find(id);
    if (entry->leaf) return entry->slot;
  }
  if (leaf_count * 2 >= leaf_capacity) grow_leaves();
  ++leaf_count;
  LeafEntry* entry = find(id);
  *entry = {id, new_slot(leaf.shape())};
  return entry->slot;
}

}  // namespace detail

using detail::Node;
using detail::Slot;
using detail::TapeState;

namespace {
std::atomic<uint32_t> next_serial{1};
thread_local Tape* current_tape = nullptr;

// dx += gradient, into memory that nobody else reads.
void accumulate(Slot& slot, const float* gradient) {
  float* sum = slot.grad.mutable_ptr();
  const int64_t n = slot.grad.numel();
  if (slot.grad.sole_owner()) return kernels::add(sum, gradient, sum, n);
  Tensor fresh = Tensor::empty(slot.grad.shape());
  kernels::add(sum, gradient, fresh.mutable_ptr(), n);
  slot.grad = std::move(fresh);
}
}  // namespace

GradArena::GradArena(uint32_t first_leaf, std::span<const int64_t> offsets)
    : first_leaf_(first_leaf), offsets_(offsets), flat_(zeros({offsets.back()})) {}

Tape::Tape() : before_(current_tape) {
  flush_denormals();
  Buffer first = Buffer::take(TapeState::kBlock - 64);
  std::byte* base = first.data();
  state_ = new (base) TapeState;
  state_->free = base + (sizeof(TapeState) + 63) / 64 * 64;
  state_->end = base + TapeState::kBlock - 64;
  state_->block = std::move(first);
  state_->serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  if (state_->serial == 0)
    state_->serial = next_serial.fetch_add(1, std::memory_order_relaxed);  // wrapped: 0 means "no tape"
  current_tape = this;
}

Tape::Tape(GradArena& arena, GradListener* listener) : Tape() {
  state_->arena = &arena;
  state_->listener = listener;
}

Tape::~Tape() {
  current_tape = before_;
  for (Node* node = state_->last; node; node = node->previous)
    if (node->closure) node->destroy(node->closure);
  for (Slot* slot = state_->slots; slot;) std::exchange(slot, slot->previous)->~Slot();
  // Blocks hold each other newest to oldest; the oldest one holds the state itself.
  Buffer block = std::move(state_->block);
  std::byte* home = reinterpret_cast<std::byte*>(state_);
  while (block.data() != home) {
    Buffer older = std::move(*reinterpret_cast<Buffer*>(block.data()));
    block = std::move(older);
  }
  state_->~TapeState();
}

Slot* TapeState::new_slot(const Shape& shape) {
  Slot* slot = new (take(sizeof(Slot))) Slot;
  slot->grad = Tensor::absent(shape);
  slot->previous = std::exchange(slots, slot);
  return slot;
}

void* Tape::node_for(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs,
                     size_t bytes, void (*pull)(void*, Pull&), void (*destroy)(void*)) {
  TapeState& s = *state_;
  bool tracked = false;
  for (const Tensor* x : inputs) tracked |= x->tape_ == s.serial || x->is_parameter();
  if (!tracked) return nullptr;
  check(!s.ran, "[", name, "] the tape has already run backward: open a new one");

  const size_t head = (sizeof(Node) + (outputs.size() + inputs.size()) * sizeof(Slot*) + 15) & ~size_t{15};
  Node* node = static_cast<Node*>(s.take(head + bytes));
  *node = Node{s.last,
               name,
               pull,
               destroy,
               reinterpret_cast<std::byte*>(node) + head,
               static_cast<int>(outputs.size()),
               static_cast<int>(inputs.size())};
  Slot** slot = node->slots;
  for (Tensor* y : outputs) {
    *slot = s.new_slot(y->shape_);
    y->tape_ = s.serial;
    y->id_ = reinterpret_cast<uintptr_t>(*slot++);
  }
  for (const Tensor* x : inputs) {
    if (x->tape_ == s.serial) {
      *slot++ = reinterpret_cast<Slot*>(x->id_);
    } else if (x->is_parameter()) {
      Slot* leaf = s.leaf_slot(*x);
      if (s.arena) {
        const uint32_t index = x->leaf_id() - s.arena->first_leaf_;
        if (index < s.arena->offsets_.size() - 1) {
          leaf->fixed = s.arena->flat_.mutable_ptr() + s.arena->offsets_[index];
          leaf->index = index;
          ++leaf->uses;
        }
      }
      *slot++ = leaf;
    } else {
      *slot++ = nullptr;
    }
  }
  s.last = node;
  ++s.length;
  return node->closure;
}

void Tape::backward(const Tensor& loss) {
  check_present("backward", loss);
  check(loss.numel() == 1, "[backward] the loss must have one element, got shape ", loss.shape());
  backward(loss, ones(loss.shape()));
}

void Tape::backward(const Tensor& y, const Tensor& dy) {
  check_present("backward", y, "y");
  check_present("backward", dy, "dy");
  TapeState& s = *state_;
  check(!s.ran, "[backward] the tape has already run: open a new one");
  check(y.tape_ == s.serial || y.tape_ == 0, "[backward] the tensor was recorded on another tape");
  check(
      y.tape_ == s.serial,
      "[backward] the tensor was not recorded: it must be computed while the tape is open, and depend on a parameter");
  check(y.shape() == dy.shape(), "[backward] the gradient has shape ", dy.shape(), ", the tensor ", y.shape());
  s.ran = true;
  TapePause pause;
  reinterpret_cast<Slot*>(y.id_)->grad = dy.detached();
  for (Node* node = s.last; node; node = node->previous) {
    bool arrived = false;
    for (int i = 0; i < node->outputs; ++i) arrived |= node->slots[i]->grad.defined();
    if (arrived) {
      Pull pull(node);
      node->pull(node->closure, pull);
    }
    // What the op saved and the gradients of its outputs are no longer needed.
    node->destroy(node->closure);
    node->closure = nullptr;
    for (int i = 0; i < node->outputs; ++i) node->slots[i]->grad = Tensor();
    if (s.listener)
      for (int i = 0; i < node->inputs; ++i)
        if (Slot* slot = node->input_slots()[i]; slot && slot->fixed && --slot->uses == 0 && slot->touched)
          s.listener->ready(s.arena->offsets_[slot->index], s.arena->offsets_[slot->index + 1]);
  }
  if (!s.arena) return;
  for (size_t i = 0; i + 1 < s.arena->offsets_.size(); ++i) {
    const detail::LeafEntry* entry =
        s.leaf_capacity ? s.find(s.arena->first_leaf_ + static_cast<uint32_t>(i)) : nullptr;
    if (entry && entry->leaf && entry->slot->touched) continue;
    std::fill(s.arena->flat_.mutable_ptr() + s.arena->offsets_[i],
              s.arena->flat_.mutable_ptr() + s.arena->offsets_[i + 1], 0.f);
    if (s.listener) s.listener->ready(s.arena->offsets_[i], s.arena->offsets_[i + 1]);
  }
}

Tensor Tape::grad(const Tensor& leaf) const {
  check(leaf.is_parameter(), "[grad] expected a parameter: mark the tensor with parameter() before it is used");
  check(state_->ran, "[grad] backward has not run");
  const detail::LeafEntry* entry = state_->leaf_capacity ? state_->find(leaf.leaf_id()) : nullptr;
  if (!entry || !entry->leaf) return zeros(leaf.shape());
  const Slot& slot = *entry->slot;
  if (slot.fixed && slot.touched)
    return state_->arena->flat_.part(slot.fixed - state_->arena->flat_.ptr(), leaf.shape());
  return slot.grad.defined() ? slot.grad : zeros(leaf.shape());
}

std::vector<OutsideLeaf> Tape::outside() const {
  std::vector<OutsideLeaf> list;
  for (uint32_t i = 0; i < state_->leaf_capacity; ++i) {
    const detail::LeafEntry& entry = state_->leaves[i];
    if (entry.leaf && !entry.slot->fixed && entry.slot->grad.defined())
      list.push_back({entry.leaf, entry.slot->grad.shape()});
  }
  return list;
}

bool Tape::checks_draws() {
#ifdef QKV_CHECK_DRAWS
  return true;
#else
  return false;
#endif
}

void Tape::note_draw(const char* op, const Rng& rng) {
  if (!checks_draws()) return;
  const detail::Draw draw{state_->draws, op, rng.key(), rng.step(), rng.shard()};
  for (const detail::Draw* before = draw.previous; before; before = before->previous)
    if (before->key == draw.key && before->step == draw.step && before->shard == draw.shard)
      throw Error(
          text("[", op, "] draws the same random numbers as ", before->op, " before it: they share a random path"),
          verbatim("give every draw a path of its own: run.at(\"name\"), or run.at(i) in a loop"));
  state_->draws = new (state_->take(sizeof draw)) detail::Draw(draw);
}

int64_t Tape::length() const { return state_->length; }
Tape* Tape::current() { return current_tape; }

bool Tape::tracks(const Tensor& x) {
  return current_tape && (x.tape_ == current_tape->state_->serial || x.is_parameter());
}

Tensor Tape::saved(const Tensor& x, std::initializer_list<const Tensor*> for_inputs) {
  for (const Tensor* input : for_inputs)
    if (tracks(*input)) return x.detached();
  return Tensor::absent(x.shape());
}

TapePause::TapePause() : before_(current_tape) { current_tape = nullptr; }
TapePause::~TapePause() { current_tape = before_; }

const Tensor& Pull::dy(int i) {
  Tensor& grad = node_->slots[i]->grad;
  if (!grad.defined()) grad = zeros(grad.shape());
  return grad;
}

bool Pull::wants(int input) const { return node_->input_slots()[input] != nullptr; }

void Pull::give(int input, Tensor gradient) {
  Slot* slot = node_->input_slots()[input];
  if (!slot) return;
  const int64_t n = slot->grad.numel();
  check(gradient.numel() == n, "[", node_->name, "] the pullback gave a gradient of shape ", gradient.shape(),
        " for an input of shape ", slot->grad.shape());
  if (slot->fixed) {
    if (slot->touched)
      kernels::add(slot->fixed, gradient.ptr(), slot->fixed, n);
    else
      std::memcpy(slot->fixed, gradient.ptr(), static_cast<size_t>(n) * sizeof(float));
    slot->touched = true;
  } else if (slot->grad.defined()) {
    accumulate(*slot, gradient.ptr());
  } else {
    slot->grad = gradient.shape() == slot->grad.shape() ? std::move(gradient) : gradient.viewed(slot->grad.shape());
  }
}

GradTarget Pull::into(int input) {
  Slot* slot = node_->input_slots()[input];
  if (slot->fixed) return {slot->fixed, std::exchange(slot->touched, true)};
  if (!slot->grad.defined()) {
    slot->grad = Tensor::empty(slot->grad.shape());
    return {slot->grad.mutable_ptr(), false};
  }
  if (!slot->grad.sole_owner()) slot->grad = slot->grad.copied();
  return {slot->grad.mutable_ptr(), true};
}

}  // namespace qkv
