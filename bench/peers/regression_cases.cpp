// Kernel regression against its peers: the book's learned pooling, and the leave-one-out bandwidth.
#include "qkv/regression/bandwidth.h"
#include "side.h"

namespace qkv::peers {
namespace {

Points column(const Arrays& inputs, const std::string& name) {
  const auto values = inputs.at(name).values<double>();
  return Points::of({values.begin(), values.end()});
}

// Five epochs of gradient descent on the leave-one-out error of 50 points, from a given w.
class LearnedPooling : public Case {
 public:
  explicit LearnedPooling(const Arrays& inputs)
      : x_(column(inputs, "x")), y_(column(inputs, "y")), start_(inputs.at("w").values<double>()[0]) {}
  void run() override { learned_ = learn_bandwidth(x_, y_, Rng(0), {.start = start_}); }
  Arrays results() override {
    run();
    return {{"losses", Array::of<double>({5}, learned_.losses)}, {"w", Array::of<double>({1}, learned_.w)}};
  }

 private:
  Points x_, y_;
  double start_;
  Learned learned_;
};

class LeaveOneOut : public Case {
 public:
  explicit LeaveOneOut(const Arrays& inputs) : x_(column(inputs, "x")), y_(column(inputs, "y")) {}
  void run() override { chosen_ = cross_validate(KernelRegression(x_, y_)).bandwidth[0]; }
  Arrays results() override {
    run();
    return {{"bandwidth", Array::of<double>({1}, std::vector<double>{chosen_})}};
  }

 private:
  Points x_, y_;
  double chosen_ = 0;
};

}  // namespace

std::unique_ptr<Case> regression_case(const std::string& name, const Arrays& inputs) {
  if (name == "learned-pooling") return std::make_unique<LearnedPooling>(inputs);
  if (name == "leave-one-out-bandwidth") return std::make_unique<LeaveOneOut>(inputs);
  return nullptr;
}

}  // namespace qkv::peers
