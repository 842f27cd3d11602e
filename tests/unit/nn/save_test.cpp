// Models to files and back: the same bits, and one line for every file that does not fit.
#include "qkv/nn/save.h"

#include <gtest/gtest.h>

#include "qkv/io/safetensors.h"
#include "qkv/nn/layers.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

// Two layers that share a matrix, an absent bias and a tensor that is not a parameter.
struct Net {
  Linear first, second;
  std::vector<LayerNorm> norms;
  Tensor statistics;

  explicit Net(const Rng& rng)
      : first(4, 4, rng.at("first"), Linear::Bias::no),
        second(4, 4, rng.at("second")),
        norms(2, LayerNorm(4)),
        statistics(normal({3}, rng.at("statistics"))) {
    second.weight = first.weight;
    for (LayerNorm& norm : norms) norm = LayerNorm(4);
  }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
    f("norms", norms);
    f("statistics", statistics);
  }
};

struct One {
  Tensor w;
  void visit(auto&& f) { f("w", w); }
};
struct Two {
  Tensor w, b, c;
  void visit(auto&& f) {
    f("w", w);
    f("b", b);
    f("c", c);
  }
};

struct Same {
  Tensor a = parameter(ones({1})), b = parameter(ones({1}));
  void visit(auto&& f) {
    f("w", a);
    f("w", b);
  }
};

std::vector<float> values(const Net& net) {
  std::vector<float> all;
  for (const auto& t : detail::tensors_of(net)) all.insert(all.end(), t.tensor.data().begin(), t.tensor.data().end());
  return all;
}

TEST(SaveModel, ALoadedModelHasTheSameBits) {
  qkv_test::TempFolder folder;
  const std::string file = folder / "net.safetensors";
  Net net(Rng(1)), other(Rng(2));
  save(net, file, {{"kind", "net"}, {"epoch", "3"}});
  EXPECT_NE(values(other), values(net));
  const Net copy = other;
  EXPECT_EQ(load(other, file), (std::map<std::string, std::string>{{"epoch", "3"}, {"kind", "net"}}));
  EXPECT_EQ(values(other), values(net));
  EXPECT_EQ(values(copy), values(net)) << "the memory that it has";
  EXPECT_EQ(other.second.weight.ptr(), other.first.weight.ptr()) << "tied parameters stay tied";
  EXPECT_EQ(SafetensorsFile(file).names(),
            (std::vector<std::string>{"first.weight", "norms.0.beta", "norms.0.gamma", "norms.1.beta", "norms.1.gamma",
                                      "second.bias", "statistics"}));
  // Flattened models too, in both directions.
  Net flat(Rng(3));
  const Parameters all = flatten(flat);
  load(flat, file);
  EXPECT_EQ(values(flat), values(net));
  EXPECT_EQ(all.values(0).at({0, 0}), net.first.weight.at({0, 0}));
  save(flat, folder / "flat.safetensors", {{"kind", "net"}, {"epoch", "3"}});
  EXPECT_EQ(qkv_test::file_bytes(folder / "flat.safetensors"), qkv_test::file_bytes(file));
}

TEST(SaveModel, AFileThatDoesNotFitIsRefusedAndTheModelStays) {
  qkv_test::TempFolder folder;
  const std::string file = folder / "one.safetensors", nowhere = folder / "none.safetensors";
  One one{parameter(Tensor({2, 3}, {1, 2, 3, 4, 5, 6}))};
  save(one, file);
  Two two{parameter(zeros({2, 3})), parameter(zeros({1})), parameter(zeros({1}))};
  EXPECT_EQ(error_of([&] { load(two, file); }), file + ": lacks tensors of the model: \"b\", and 1 more");
  EXPECT_EQ(two.w.at({0, 0}), 0);
  const std::string more = folder / "two.safetensors";
  save(two, more);
  EXPECT_EQ(error_of([&] { load(one, more); }), more + ": has tensors that the model lacks: \"b\", and 1 more");
  One turned{parameter(zeros({3, 2}))};
  EXPECT_EQ(error_of([&] { load(turned, file); }), file + ": \"w\" has shape (2, 3), in the model (3, 2)");
  EXPECT_EQ(turned.w.at({0, 0}), 0);
  EXPECT_NE(error_of([&] { load(one, nowhere); }).find(nowhere), std::string::npos);
  EXPECT_EQ(one.w.at({1, 2}), 6);
}

TEST(SaveModel, ReplacesAFileInOneStepOrLeavesIt) {
  qkv_test::TempFolder folder;
  const std::string file = folder / "one.safetensors";
  One one{parameter(ones({2}))}, twos{parameter(full({2}, 2))};
  save(one, file);
  save(twos, file);
  load(one, file);
  EXPECT_EQ(one.w.at({0}), 2);
  EXPECT_EQ(folder.count(), 1) << "nothing is left beside it";
  EXPECT_NE(error_of([&] { save(one, folder / "none/one.safetensors"); }), "no error");
}

TEST(SaveModel, RefusesANameThatStandsForTwoTensors) {
  qkv_test::TempFolder folder;
  EXPECT_EQ(error_of([&] { save(Same(), folder / "same.safetensors"); }), "[save] visit() names two tensors \"w\"");
}

}  // namespace
}  // namespace qkv
