// Tape: records the ops of a scope and runs their pullbacks in reverse (reverse-mode differentiation, first
// derivatives).
//
//   Tape tape;                          // the thread's current tape until the end of the scope
//   Tensor loss = f(w);                 // ops record themselves
//   tape.backward(loss);
//   Tensor dw = tape.grad(w);           // gradients belong to the tape
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

class Tape;
namespace detail {
struct Node;
struct Slot;
struct TapeState;
}  // namespace detail

/// Where a pullback may add a gradient in place: `add` says whether it holds a sum already (if not, its contents are
/// arbitrary).
struct GradTarget {
  float* data;
  bool add;
};

/// What a pullback sees: the gradients of its outputs, and which inputs want one.
class Pull {
 public:
  /// Gradient of output i; zeros if none arrived.
  const Tensor& dy(int i = 0);
  bool wants(int input) const;
  /// dx += gradient. The tensor is taken over where possible.
  void give(int input, Tensor gradient);
  /// The buffer of the gradient of that input, for kernels that add into it themselves. Call only if wants(input).
  GradTarget into(int input);

 private:
  friend class Tape;
  Pull(detail::Node* node) : node_(node) {}
  detail::Node* node_;
};

/// Gradients of many parameters in one flat buffer, laid out as flatten() laid out the parameters.
class GradArena {
 public:
  /// Leaves first_leaf, first_leaf + 1, ... start at offsets[0], offsets[1], ...; offsets.back() is the total.
  GradArena(uint32_t first_leaf, std::span<const int64_t> offsets);
  const Tensor& flat() const { return flat_; }

 private:
  friend class Tape;
  uint32_t first_leaf_;
  std::span<const int64_t> offsets_;
  Tensor flat_;
};

/// Is told when gradients in an arena have their values, while the backward pass computes the others: floats [begin,
/// end), each once.
class GradListener {
 public:
  virtual ~GradListener() = default;
  virtual void ready(int64_t begin, int64_t end) = 0;
};

/// A parameter that is not in the arena of a tape.
struct OutsideLeaf {
  uint32_t number = 0;
  Shape shape;
};

class Tape {
 public:
  Tape();
  /// Gradients of the arena's leaves are written there (all of them: untouched ones become zero).
  explicit Tape(GradArena& arena, GradListener* listener = nullptr);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Runs the pullbacks from a recorded scalar; once per tape.
  void backward(const Tensor& loss);
  /// Runs the pullbacks from any recorded tensor with a given gradient.
  void backward(const Tensor& y, const Tensor& dy);
  /// The gradient of a parameter; zeros if the loss does not depend on it.
  Tensor grad(const Tensor& leaf) const;
  /// After backward: the parameters outside the arena that a gradient arrived at.
  std::vector<OutsideLeaf> outside() const;
  /// Notes that an op draws from that random stream. Where checks_draws(), which is in debug builds, a second draw from
  /// one stream fails: it would give the same numbers again.
  void note_draw(const char* op, const Rng& rng);
  static bool checks_draws();
  /// Number of recorded ops.
  int64_t length() const;

  static Tape* current();
  /// True if ops on x are recorded now.
  static bool tracks(const Tensor& x);
  /// For a closure: x if one of the inputs that need it is tracked, else only its shape, so that values no pullback
  /// reads are not kept alive.
  static Tensor saved(const Tensor& x, std::initializer_list<const Tensor*> for_inputs);

  /// Used by record(): memory for a closure, or null if nothing is recorded.
  void* node_for(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs,
                 size_t bytes, void (*pull)(void*, Pull&), void (*destroy)(void*));

 private:
  friend class Pull;
  friend class TapePause;
  detail::TapeState* state_;
  Tape* before_;
};

/// While one is alive, nothing is recorded on this thread.
class TapePause {
 public:
  TapePause();
  ~TapePause();
  TapePause(const TapePause&) = delete;
  TapePause& operator=(const TapePause&) = delete;

 private:
  Tape* before_;
};

/// Records outputs = name(inputs) with its pullback, a callable (Pull&). Whatever the closure captures is saved. Does
/// nothing if no tape is alive or no input is tracked.
template <class Pullback>
void record(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs,
            Pullback&& pullback) {
  using Closure = std::remove_cvref_t<Pullback>;
  static_assert(alignof(Closure) <= alignof(std::max_align_t));
  Tape* tape = Tape::current();
  if (!tape) return;
  void* memory = tape->node_for(
      name, outputs, inputs, sizeof(Closure), [](void* c, Pull& p) { (*static_cast<Closure*>(c))(p); },
      [](void* c) { static_cast<Closure*>(c)->~Closure(); });
  if (memory) new (memory) Closure(std::forward<Pullback>(pullback));
}

template <class Pullback>
void record(const char* name, std::initializer_list<Tensor*> outputs, std::initializer_list<const Tensor*> inputs,
            Pullback&& pullback) {
  record(name, std::span<Tensor* const>(outputs.begin(), outputs.size()),
         std::span<const Tensor* const>(inputs.begin(), inputs.size()), std::forward<Pullback>(pullback));
}

template <class Pullback>
void record(const char* name, Tensor& output, std::initializer_list<const Tensor*> inputs, Pullback&& pullback) {
  record(name, {&output}, inputs, std::forward<Pullback>(pullback));
}

}  // namespace qkv
