// Recurrent cells row by row, the width in lanes.
#include "qkv/kernels/recurrent.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/recurrent.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/math-inl.h"
#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace recurrent {

/// y (1 - y) and 1 - y^2: the slopes of sigmoid and tanh from their values.
HWY_INLINE Vec SigmoidSlope(Vec y) { return hn::NegMulAdd(y, y, y); }
HWY_INLINE Vec TanhSlope(Floats d, Vec y) { return hn::NegMulAdd(y, y, hn::Set(d, 1.f)); }

/// One vector of a row of slots: element i of slot s is at data + s * width + i, with `left` elements left in the row.
template <class T>
struct Slots {
  T* data;
  int64_t width, left;
  HWY_INLINE Vec At(int64_t s) const { return LoadUpTo(Floats(), data + s * width, left); }
  HWY_INLINE void Set(int64_t s, Vec v) const { StoreUpTo(v, Floats(), data + s * width, left); }
};

// f(row, i, left) for every vector of every row.
template <class F>
HWY_INLINE void ForRows(int64_t rows, int64_t width, F&& f) {
  for (int64_t r = 0; r < rows; ++r) ForVectors(width, [&](int64_t i, int64_t left) HWY_ATTR { f(r, i, left); });
}

void Gru(const CellStep& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t i, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 4 * w + i, w, left}, h{s.h + row * w + i, w, left};
    const Slots<const float> u{s.recurrent + row * 3 * w + i, w, left}, b{s.bias + i, w, left},
        before{s.h_before + row * w + i, w, left};
    const Vec r = FastSigmoid(d, hn::Add(hn::Add(kept.At(1), b.At(1)), u.At(0)));
    const Vec z = FastSigmoid(d, hn::Add(hn::Add(kept.At(2), b.At(2)), u.At(1)));
    const Vec un = hn::Add(u.At(2), b.At(3));
    const Vec n = FastTanh(d, hn::MulAdd(r, un, hn::Add(kept.At(0), b.At(0))));
    h.Set(0, hn::MulAdd(z, before.At(0), hn::NegMulAdd(z, n, n)));
    kept.Set(0, n);
    kept.Set(1, r);
    kept.Set(2, z);
    kept.Set(3, un);
  });
}

// dn = dh (1 - z),  dz = dh (h - n),  then through the gates; U_n h gets r da_n,  r gets da_n (U_n h)
void GruBack(const CellBack& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t i, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 4 * w + i, w, left}, dh{s.dh + row * w + i, w, left};
    const Slots<const float> before{s.h_before + row * w + i, w, left};
    const Vec n = kept.At(0), r = kept.At(1), z = kept.At(2), un = kept.At(3), g = dh.At(0);
    const Vec dan = hn::Mul(hn::NegMulAdd(g, z, g), TanhSlope(d, n));
    kept.Set(0, dan);
    kept.Set(1, hn::Mul(hn::Mul(dan, un), SigmoidSlope(r)));
    kept.Set(2, hn::Mul(hn::Mul(g, hn::Sub(before.At(0), n)), SigmoidSlope(z)));
    kept.Set(3, hn::Mul(dan, r));
    dh.Set(0, hn::Mul(g, z));
  });
}

void GruBeforeGates(const CellStep& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t i, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 4 * w + i, w, left};
    const Slots<const float> u{s.recurrent + row * 2 * w + i, w, left}, b{s.bias + i, w, left},
        before{s.h_before + row * w + i, w, left};
    const Vec r = FastSigmoid(d, hn::Add(hn::Add(kept.At(1), b.At(1)), u.At(0)));
    kept.Set(1, r);
    kept.Set(2, FastSigmoid(d, hn::Add(hn::Add(kept.At(2), b.At(2)), u.At(1))));
    kept.Set(3, hn::Mul(r, before.At(0)));
  });
}

void GruBeforeStep(const CellStep& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t i, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 4 * w + i, w, left}, h{s.h + row * w + i, w, left};
    const Slots<const float> u{s.recurrent + row * w + i, w, left}, b{s.bias + i, w, left},
        before{s.h_before + row * w + i, w, left};
    const Vec z = kept.At(2), n = FastTanh(d, hn::Add(hn::Add(kept.At(0), b.At(0)), u.At(0)));
    h.Set(0, hn::MulAdd(z, before.At(0), hn::NegMulAdd(z, n, n)));
    kept.Set(0, n);
  });
}

void GruBeforeBack(const CellBack& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t i, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 4 * w + i, w, left}, dh{s.dh + row * w + i, w, left};
    const Slots<const float> before{s.h_before + row * w + i, w, left};
    const Vec n = kept.At(0), z = kept.At(2), g = dh.At(0);
    kept.Set(0, hn::Mul(hn::NegMulAdd(g, z, g), TanhSlope(d, n)));
    kept.Set(2, hn::Mul(hn::Mul(g, hn::Sub(before.At(0), n)), SigmoidSlope(z)));
    dh.Set(0, hn::Mul(g, z));
  });
}

// r gets d(r h) h,  h gets d(r h) r
void GruBeforeResetBack(const CellBack& s) {
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t i, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 4 * w + i, w, left}, dh{s.dh + row * w + i, w, left};
    const Slots<const float> before{s.h_before + row * w + i, w, left}, dreset{s.dreset + row * w + i, w, left};
    const Vec r = kept.At(1), g = dreset.At(0);
    dh.Set(0, hn::MulAdd(g, r, dh.At(0)));
    kept.Set(1, hn::Mul(hn::Mul(g, before.At(0)), SigmoidSlope(r)));
  });
}

void Lstm(const CellStep& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t at, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 5 * w + at, w, left}, h{s.h + row * w + at, w, left},
        c{s.c + row * w + at, w, left};
    const Slots<const float> u{s.recurrent + row * 4 * w + at, w, left}, b{s.bias + at, w, left},
        before{s.c_before + row * w + at, w, left};
    const auto sum = [&](int64_t gate) HWY_ATTR { return hn::Add(hn::Add(kept.At(gate), b.At(gate)), u.At(gate)); };
    const Vec i = FastSigmoid(d, sum(0)), f = FastSigmoid(d, sum(1)), g = FastTanh(d, sum(2)),
              o = FastSigmoid(d, sum(3));
    const Vec next = hn::MulAdd(f, before.At(0), hn::Mul(i, g)), t = FastTanh(d, next);
    h.Set(0, hn::Mul(o, t));
    c.Set(0, next);
    kept.Set(0, i);
    kept.Set(1, f);
    kept.Set(2, g);
    kept.Set(3, o);
    kept.Set(4, t);
  });
}

// dc += dh o (1 - tanh(c)^2);  di = dc g, df = dc c, dg = dc i, do = dh tanh(c);  dc = dc f
void LstmBack(const CellBack& s) {
  const Floats d;
  const int64_t w = s.width;
  ForRows(s.rows, w, [&](int64_t row, int64_t at, int64_t left) HWY_ATTR {
    const Slots<float> kept{s.kept + row * 5 * w + at, w, left}, dh{s.dh + row * w + at, w, left},
        dc{s.dc + row * w + at, w, left};
    const Slots<const float> before{s.c_before + row * w + at, w, left};
    const Vec i = kept.At(0), f = kept.At(1), g = kept.At(2), o = kept.At(3), t = kept.At(4), gh = dh.At(0);
    const Vec gc = hn::MulAdd(hn::Mul(gh, o), TanhSlope(d, t), dc.At(0));
    kept.Set(0, hn::Mul(hn::Mul(gc, g), SigmoidSlope(i)));
    kept.Set(1, hn::Mul(hn::Mul(gc, before.At(0)), SigmoidSlope(f)));
    kept.Set(2, hn::Mul(hn::Mul(gc, i), TanhSlope(d, g)));
    kept.Set(3, hn::Mul(hn::Mul(gh, t), SigmoidSlope(o)));
    dh.Set(0, hn::Zero(d));
    dc.Set(0, hn::Mul(gc, f));
  });
}

void MultiplyInto(const float* x, const float* factor, float* y, int64_t n, bool add) {
  const Floats d;
  if (!add) return Map(x, factor, y, n, [](Floats, Vec a, Vec b) HWY_ATTR { return hn::Mul(a, b); });
  ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    StoreUpTo(hn::MulAdd(LoadUpTo(d, x + i, left), LoadUpTo(d, factor + i, left), LoadUpTo(d, y + i, left)), d, y + i,
              left);
  });
}

}  // namespace recurrent

void GruStep(const CellStep& s) { recurrent::Gru(s); }
void GruBack(const CellBack& s) { recurrent::GruBack(s); }
void GruBeforeGates(const CellStep& s) { recurrent::GruBeforeGates(s); }
void GruBeforeStep(const CellStep& s) { recurrent::GruBeforeStep(s); }
void GruBeforeBack(const CellBack& s) { recurrent::GruBeforeBack(s); }
void GruBeforeResetBack(const CellBack& s) { recurrent::GruBeforeResetBack(s); }
void LstmStep(const CellStep& s) { recurrent::Lstm(s); }
void LstmBack(const CellBack& s) { recurrent::LstmBack(s); }
void MultiplyInto(const float* x, const float* factor, float* y, int64_t n, bool add) {
  recurrent::MultiplyInto(x, factor, y, n, add);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(GruStep);
HWY_EXPORT(GruBack);
HWY_EXPORT(GruBeforeGates);
HWY_EXPORT(GruBeforeStep);
HWY_EXPORT(GruBeforeBack);
HWY_EXPORT(GruBeforeResetBack);
HWY_EXPORT(LstmStep);
HWY_EXPORT(LstmBack);
HWY_EXPORT(MultiplyInto);

void gru_step(const CellStep& step) { HWY_DYNAMIC_DISPATCH(GruStep)(step); }
void gru_back(const CellBack& back) { HWY_DYNAMIC_DISPATCH(GruBack)(back); }
void gru_before_gates(const CellStep& step) { HWY_DYNAMIC_DISPATCH(GruBeforeGates)(step); }
void gru_before_step(const CellStep& step) { HWY_DYNAMIC_DISPATCH(GruBeforeStep)(step); }
void gru_before_back(const CellBack& back) { HWY_DYNAMIC_DISPATCH(GruBeforeBack)(back); }
void gru_before_reset_back(const CellBack& back) { HWY_DYNAMIC_DISPATCH(GruBeforeResetBack)(back); }
void lstm_step(const CellStep& step) { HWY_DYNAMIC_DISPATCH(LstmStep)(step); }
void lstm_back(const CellBack& back) { HWY_DYNAMIC_DISPATCH(LstmBack)(back); }
void multiply_into(const float* x, const float* factor, float* y, int64_t n, bool add) {
  HWY_DYNAMIC_DISPATCH(MultiplyInto)(x, factor, y, n, add);
}

}  // namespace qkv::kernels
#endif
