// Sparse attention: rows of queries forward, heads of keys backward, so that no two threads write to one place.
#include "qkv/ops/sparse_attention.h"

#include "qkv/core/parallel.h"
#include "qkv/kernels/borrowed.h"
#include "qkv/kernels/sparse_attention.h"
#include "qkv/kernels/step_attention.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kQueries = 16;  // per block of work
constexpr double kPairNanoseconds = 0.1;

struct Sizes {
  int64_t batch, queries, keys, heads, key_heads, width;
  Sizes(const Tensor& q, const Tensor& k)
      : batch(q.size(0)),
        queries(q.size(1)),
        keys(k.size(1)),
        heads(q.size(2)),
        key_heads(k.size(2)),
        width(q.size(3)) {}
};

double cost(const Sizes& s, const KeyRuns& runs) {
  return kPairNanoseconds * static_cast<double>(runs.pairs(s.batch)) * static_cast<double>(s.heads * s.width);
}

Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v, const KeyRuns& runs, float scale) {
  const Sizes s(q, k);
  Tensor y = Tensor::empty(q.shape());
  const int64_t row = s.heads * s.width, key_row = s.key_heads * s.width;
  const kernels::StepAttention sizes{s.heads, s.key_heads, s.width, scale};
  parallel_ranges(s.batch * s.queries, kQueries, cost(s, runs), [&](int64_t begin, int64_t end) {
    kernels::Borrowed<int32_t> slots;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t b = r / s.queries;
      slots->clear();
      runs.each(b, r % s.queries, [&](int32_t j) { slots->push_back(j); });
      const auto count = static_cast<int32_t>(slots->size());
      const kernels::StepKeys keys{k.ptr() + b * s.keys * key_row, v.ptr() + b * s.keys * key_row, slots->data(), count,
                                   &count};
      kernels::step_attention(sizes, q.ptr() + r * row, keys, y.mutable_ptr() + r * row, 0, 1);
    }
  });
  return y;
}

struct Gradients {
  Tensor q, k, v;
};

Gradients backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dy, const KeyRuns& runs,
                   float scale) {
  const Sizes s(q, k);
  Gradients out{Tensor::empty(q.shape()), zeros(k.shape()), zeros(v.shape())};
  const int64_t row = s.heads * s.width, key_row = s.key_heads * s.width, shared = s.heads / s.key_heads;
  parallel_for(s.batch * s.key_heads, 3 * cost(s, runs), [&](int64_t head) {
    const int64_t b = head / s.key_heads, first = b * s.keys * key_row + head % s.key_heads * s.width;
    kernels::Borrowed<int32_t> slots;
    for (int64_t i = 0; i < s.queries; ++i) {
      slots->clear();
      runs.each(b, i, [&](int32_t j) { slots->push_back(j); });
      for (int64_t h = head % s.key_heads * shared; h < (head % s.key_heads + 1) * shared; ++h) {
        const int64_t at = (b * s.queries + i) * row + h * s.width;
        kernels::sparse_attention_backward({slots->data(), static_cast<int64_t>(slots->size()), s.width, key_row, scale,
                                            q.ptr() + at, dy.ptr() + at, k.ptr() + first, v.ptr() + first},
                                           out.q.mutable_ptr() + at, out.k.mutable_ptr() + first,
                                           out.v.mutable_ptr() + first);
      }
    }
  });
  return out;
}

}  // namespace

void KeyRuns::add(const std::vector<KeyRun>& of_query) {
  for (const KeyRun& run : of_query)
    if (run.count() > 0) runs.push_back(run);
  first.push_back(std::ssize(runs));
}

int64_t KeyRuns::pairs(int64_t rows) const {
  int64_t count = 0;
  for (const KeyRun& run : runs) count += run.count();
  return batch == 1 ? count * rows : count;
}

Tensor KeyRuns::dense(int64_t keys) const {
  Tensor out = zeros({batch, 1, queries, keys});
  for (int64_t r = 0; r < batch * queries; ++r)
    each(r / queries, r % queries, [&](int32_t j) { out.mutable_ptr()[r * keys + j] = 1; });
  return out;
}

// y = alpha v, alpha = softmax(scale q . k) over the keys of the runs
// dv = alpha^T dy    ds = scale alpha (dy . v - sum alpha (dy . v))    dq = ds k    dk = ds^T q
Tensor sparse_attention(const Tensor& q, const Tensor& k, const Tensor& v, std::shared_ptr<const KeyRuns> runs,
                        float scale) {
  check_present("sparse_attention", q, "queries");
  check_present("sparse_attention", k, "keys");
  check_present("sparse_attention", v, "values");
  check(q.rank() == 4 && k.rank() == 4 && k.shape() == v.shape() && q.size(0) == k.size(0) && q.size(3) == k.size(3) &&
            k.size(2) > 0 && q.size(2) % k.size(2) == 0,
        "[sparse_attention] expected (B, Lq, H, D) and twice (B, Lk, Hk, D), got ", q.shape(), ", ", k.shape(), " and ",
        v.shape());
  check((runs->batch == 1 || runs->batch == q.size(0)) && runs->queries == q.size(1) &&
            std::ssize(runs->first) == runs->batch * runs->queries + 1,
        "[sparse_attention] runs of ", runs->batch, " rows with ", runs->queries, " queries, but queries ", q.shape());
  for (const KeyRun& run : runs->runs)
    check(run.begin >= 0 && run.end <= k.size(1) && run.step > 0, "[sparse_attention] keys ", run.begin, " to ",
          run.end, " of ", k.size(1));
  Tensor y = forward(q, k, v, *runs, scale);
  record("sparse_attention", y, {&q, &k, &v},
         [q = q.detached(), k = k.detached(), v = v.detached(), runs, scale](Pull& p) {
           Gradients d = backward(q, k, v, p.dy(), *runs, scale);
           if (p.wants(0)) p.give(0, std::move(d.q));
           if (p.wants(1)) p.give(1, std::move(d.k));
           if (p.wants(2)) p.give(2, std::move(d.v));
         });
  return y;
}

}  // namespace qkv
