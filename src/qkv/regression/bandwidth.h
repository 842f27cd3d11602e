// Choosing the width of a kernel: by rule of thumb, by exact leave-one-out cross-validation, or learned by gradient as
// in the notes.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/rng.h"
#include "qkv/regression/kernel_regression.h"

namespace QKV_API qkv {

/// The normal-reference rule (Silverman, Density Estimation, 1986, section 3.4.2; Scott, 1992, section 6.3.1 for d >
/// 1), one width per coordinate: h_a = c_K 1.06 s_a n^(-1 / (d + 4)), s_a the smaller of the standard deviation and the
/// interquartile range / 1.349, and c_K the ratio of canonical widths that gives another kernel the smoothness of a
/// Gaussian (Marron and Nolan, 1988). Fails if all x of a column are equal, or so small or large that the width is not
/// between 1e-300 and 1e300.
std::vector<double> rule_bandwidth(const Points& x, KernelShape kernel);

struct CrossValidated {
  std::vector<double> bandwidth;  // (d)
  double score = 0;               // KernelRegression::leave_one_out_score at that bandwidth
  int evaluations = 0;
};

/// The progress of a search; reported after every score, on the calling thread.
struct SearchProgress {
  double share = 0;  // of the expected work
  int evaluations = 0;
};
using SearchObserver = std::function<void(const SearchProgress&)>;

/// The width with the smallest leave-one-out score: a grid over the logarithm of a common factor of the rule's widths
/// (1/32 of the rule to the range of the data), then golden section around the best grid point; in several dimensions
/// also golden section coordinate by coordinate, until a round gains less than 1 in 10,000. There the time of a score
/// grows with the square of the rows: above 1,500 rows the search uses the errors of 500 rows (each predicted from all
/// others), with parabolas instead of golden sections, then of 2,000, and its last steps use all rows. The returned
/// score is of all rows. Deterministic.
CrossValidated cross_validate(const KernelRegression& regression, const SearchObserver& observer = {});

struct LearnOptions {
  double rate = 0.5;
  int epochs = 5;
  std::optional<double> start = {};  // of w; not set: uniform in (0, 1) from the generator
};

struct Learned {
  std::vector<double> w;       // (d): the kernel is exp(-((x - x_i) w)^2 / 2), so the width is 1 / |w|
  std::vector<double> losses;  // (epochs): the loss at each step
  std::vector<double> start;   // (d)
  /// 1 / |w|; fails if a w is zero, which means the average.
  std::vector<double> bandwidth() const;
};

/// Learned attention pooling: stochastic gradient descent on the summed squared leave-one-out error
/// L(w) = sum_i (f_-i(x_i) - y_i)^2, one step per epoch; the defaults are those of the notes.
Learned learn_bandwidth(const Points& x, const Points& y, const Rng& rng, const LearnOptions& options = {});

}  // namespace qkv
