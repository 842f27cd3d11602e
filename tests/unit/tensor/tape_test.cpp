// The tape: who gets a gradient, and when.
#include "qkv/tensor/tape.h"

#include <gtest/gtest.h>

#include "qkv/kernels/elementwise.h"

using namespace qkv;

namespace {
Tensor plus(const Tensor& a, const Tensor& b) {
  Tensor y = Tensor::empty(a.shape());
  kernels::add(a.ptr(), b.ptr(), y.mutable_ptr(), a.numel());
  record("plus", y, {&a, &b}, [](Pull& p) {
    p.give(0, p.dy());
    p.give(1, p.dy());
  });
  return y;
}
}  // namespace

TEST(Tape, SumsGradientsOfATensorUsedTwice) {
  Tensor w = parameter(Tensor({1}, {3}));
  Tape tape;
  Tensor y = plus(w, w), z = plus(y, w);
  EXPECT_EQ(tape.length(), 2);
  tape.backward(z);
  EXPECT_EQ(z.item(), 9);
  EXPECT_EQ(tape.grad(w).item(), 3);
}

TEST(Tape, RecordsNothingForConstantsOrWithoutATape) {
  Tensor c = ones({2}), w = parameter(ones({2}));
  EXPECT_EQ(Tape::current(), nullptr);
  Tensor outside = plus(w, c);
  Tape tape;
  plus(c, c);
  plus(outside, c);
  EXPECT_EQ(tape.length(), 0);
}

TEST(Tape, ManyOpsSpanManyBlocks) {
  Tensor w = parameter(Tensor({1}, {1}));
  Tape tape;
  Tensor y = w;
  for (int i = 0; i < 5000; ++i) y = plus(y, w);
  tape.backward(y);
  EXPECT_EQ(tape.grad(w).item(), 5001);
}

TEST(Tape, WritesGradientsIntoItsArenaAndZeroesTheUntouched) {
  Tensor flat = zeros({5});
  Tensor a = parameter(flat.part(0, {2})), b = parameter(flat.part(2, {3}));
  const int64_t offsets[] = {0, 2, 5};
  GradArena arena(a.leaf_id(), offsets);
  ASSERT_EQ(b.leaf_id(), a.leaf_id() + 1);
  std::fill_n(detail::writable(arena.flat()), 5, 7.f);
  Tape tape(arena);
  Tensor y = plus(a, a);
  tape.backward(y, ones({2}));
  EXPECT_EQ(tape.grad(a).data()[1], 2);
  const std::vector<float> expected = {2, 2, 0, 0, 0};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), arena.flat().data().begin()));
}

TEST(Tape, AParameterJustBeforeThoseOfTheArenaKeepsItsOwnGradient) {
  Tensor alone = parameter(ones({2}));
  Tensor flat = zeros({2}), inside = parameter(flat);
  const int64_t offsets[] = {0, 2};
  GradArena arena(inside.leaf_id(), offsets);
  ASSERT_EQ(inside.leaf_id(), alone.leaf_id() + 1);
  Tensor after = parameter(ones({2}));
  Tape tape(arena);
  tape.backward(plus(plus(alone, inside), after), Tensor({2}, {3, 4}));
  EXPECT_EQ(tape.grad(alone).data()[1], 4);
  EXPECT_EQ(tape.grad(after).data()[0], 3);
  EXPECT_EQ(arena.flat().data()[1], 4);
}

TEST(Tape, SaysWhatItCannotDo) {
  const Tensor w = parameter(ones({2})), c = ones({2});
  Tape tape;
  const Tensor y = plus(w, c);
  const auto error_of = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of([&] { tape.backward(y); }), "[backward] the loss must have one element, got shape (2,)");
  EXPECT_EQ(
      error_of([&] { tape.backward(c, c); }),
      "[backward] the tensor was not recorded: it must be computed while the tape is open, and depend on a parameter");
  EXPECT_EQ(error_of([&] { tape.backward(y, ones({3})); }), "[backward] the gradient has shape (3,), the tensor (2,)");
  EXPECT_EQ(error_of([&] { tape.grad(w); }), "[grad] backward has not run");
  tape.backward(y, c);
  EXPECT_EQ(error_of([&] { tape.backward(y, c); }), "[backward] the tape has already run: open a new one");
  EXPECT_EQ(error_of([&] { plus(y, w); }), "[plus] the tape has already run backward: open a new one");
  EXPECT_EQ(error_of([&] { tape.grad(c); }),
            "[grad] expected a parameter: mark the tensor with parameter() before it is used");
}
