// One recurrent layer over packed steps, forward and backward: the building block of the recurrent ops. Records
// nothing.
#pragma once

#include "qkv/kernels/recurrent.h"
#include "qkv/ops/cell_weights.h"
#include "qkv/ops/steps.h"
#include "qkv/tensor/tape.h"

namespace qkv {

/// Fails, naming the op, unless the weights fit a cell of that kind with `inputs` inputs.
void check_cell(const char* op, CellKind kind, const CellWeights& weights, int64_t inputs);

/// What backward needs of a layer besides its weights and inputs.
struct CellKept {
  CellKind kind = CellKind::gru;
  int64_t width = 0;
  Tensor gates;     // (total, slots, H), see kernels/recurrent.h
  Tensor h_before;  // (total, H)
  Tensor c_before;  // (total, H), lstm only

  int64_t stride() const { return kernels::cell_slots(kind) * width; }
};

/// Approximate nanoseconds for the forward steps of a layer: its recurrent products and gates.
double cell_cost(CellKind kind, int64_t width, int64_t steps);

/// The forward pass of a layer. Ranges of rows are independent: threads own rows.
class CellForward {
 public:
  /// h and c (B, H), or absent for 0. The weights must outlive this object.
  CellForward(CellKind kind, const CellWeights& weights, const Steps& steps, const Tensor& h, const Tensor& c);

  /// gates = x input[:, first .. first + count - 1]^T for all packed rows, in parallel; x (total, count).
  void set_inputs(const float* x, int64_t first, int64_t count) const;
  /// Call before add_inputs.
  void prepare_add_inputs();
  /// gates (+)= the same for some packed rows; x (rows, count).
  void add_inputs(const float* x, int64_t first, int64_t count, int64_t row, int64_t rows, bool add) const;
  /// Step s for those of the sorted rows begin .. end - 1 that have it; their input products must be set.
  void step(int64_t s, int64_t begin, int64_t end) const;

  const CellKept& kept() const { return kept_; }
  /// New states, packed: (total, H).
  const Tensor& h() const { return h_; }
  /// States after the last step of every row, in the order of the batch: (B, H).
  Tensor last_h() const { return steps_.unsorted(h_last_); }
  Tensor last_c() const { return steps_.unsorted(c_last_); }

 private:
  // to (rows, gates of the product) = x (rows, H) times the recurrent weights of `count` gates starting at `gate`.
  void recur(const float* x, int64_t stride, int64_t rows, int64_t gate, int64_t count, float* to) const;

  const Steps& steps_;
  const CellWeights& weights_;
  CellKept kept_;
  Tensor input_t_;                      // (D, G H), columns in slot order
  Tensor recurrent_t_, recurrent_n_t_;  // (H, G H); gru_before: (H, 2 H) and (H, H). Absent for a single step
  Tensor bias_;                         // (4 H)
  Tensor h_, h_last_, c_last_, c_new_, products_;
};

/// The backward pass of the same layer. dh() is the gradient of the state after the next step to be processed; callers
/// add to it.
class CellBackward {
 public:
  /// dh and dc: gradients of the last states, (B, H); dc absent unless lstm.
  CellBackward(const CellKept& kept, const CellWeights& weights, const Steps& steps, const Tensor& dh,
               const Tensor& dc);

  void step(int64_t s, int64_t begin, int64_t end) const;
  /// to (rows, count) (+)= the gradient of input columns first .. of packed rows; call after their step.
  void input_gradient(float* to, int64_t first, int64_t count, int64_t row, int64_t rows, bool add) const;
  /// The same for all packed rows, in parallel.
  void all_input_gradients(float* to, int64_t first, int64_t count) const;

  /// Sorted (B, H).
  const Tensor& dh() const { return dh_; }
  /// Gradients of the first states, in the order of the batch.
  Tensor first_dh() const { return steps_.unsorted(dh_); }
  Tensor first_dc() const { return steps_.unsorted(dc_); }

  /// Adds to the gradient of the input weights, columns first ..; x (total, count) packed.
  void pull_input(const GradTarget& to, const float* x, int64_t first, int64_t count) const;
  /// Gives the gradients of recurrent weights and biases: inputs `first`, first + 1, first + 2 of the node.
  void pull_rest(Pull& pull, int first) const;

 private:
  const Steps& steps_;
  const CellKept& kept_;
  const CellWeights& weights_;
  Tensor input_;  // (G H, D), rows in slot order
  Tensor dh_, dc_, dreset_;
};

}  // namespace qkv
