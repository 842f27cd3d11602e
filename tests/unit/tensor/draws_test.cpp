// Two draws from one random path give the same numbers: debug builds refuse the second.
#include <gtest/gtest.h>

#include "qkv/nn/layers.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/embedding.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

// What a debug build says, and other builds do not.
std::string in_debug(const std::string& error) { return Tape::checks_draws() ? error : "no error"; }

TEST(Draws, TwoFromOnePathAreFoundInDebugBuilds) {
  const qkv::Run run{.training = true, .rng = Rng(3)};
  const Tensor x = parameter(ones({12}));
  const LayerNorm norm(12);
  EXPECT_EQ(error_of([&] {
              Tape tape;
              dropout(x, 0.5f, run);
              dropout(x, 0.5f, run);
            }),
            in_debug("[dropout] draws the same random numbers as dropout before it: they share a random path"));
  EXPECT_EQ(
      error_of([&] {
        Tape tape;
        dropout(x, 0.5f, run.at("a"));
        norm(x, x, 0.5f, run.at("a"));
      }),
      in_debug("[residual_layer_norm] draws the same random numbers as dropout before it: they share a random path"));
}

TEST(Draws, PathsStepsShardsAndTapesAreApart) {
  const qkv::Run run{.training = true, .rng = Rng(3)};
  const Tensor x = parameter(ones({12}));
  EXPECT_EQ(error_of([&] {
              Tape tape;
              dropout(x, 0.5f, run);
              dropout(x, 0.5f, run.at("a"));
              dropout(x, 0.5f, run.at(0));
              dropout(x, 0.5f, {.training = true, .rng = run.rng.at_step(1)});
              dropout(x, 0.5f, {.training = true, .rng = run.rng.at_shard(1)});
              dropout(x, 0, run);
              dropout(x, 0.5f, qkv::Run{});
              dropout(x, 0.5f, qkv::Run{});
              Tape inner;
              dropout(x, 0.5f, run);
            }),
            "no error");
  EXPECT_EQ(error_of([&] {
              dropout(x, 0.5f, run);
              dropout(x, 0.5f, run);
            }),
            "no error")
      << "without a tape nothing is trained";
}

}  // namespace
}  // namespace qkv
