// Kernel regression (Nadaraya, 1964; Watson, 1964): attention pooling on raw inputs, f(q) = sum_i alpha(q, x_i) y_i.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "qkv/core/api.h"
#include "qkv/core/forms.h"
#include "qkv/regression/local_fit.h"
#include "qkv/regression/points.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

struct RegressionOptions {
  KernelShape kernel = KernelShape::gaussian;
  Estimator estimator = Estimator::local_constant;
  /// One for all coordinates, or one each; ignored by the average and the constant kernel.
  std::vector<double> bandwidth = {1};
};

/// Predictions at some points. Where no key has weight there is no prediction: NaN in `values` (and in the band),
/// counted in `absent`.
struct Predictions {
  Points values;                  // (queries, outputs)
  Points low, high;               // (queries, outputs), if a band was requested
  std::vector<double> deviation;  // (outputs): sigma of the noise, for the band
  int64_t absent = 0;
};

/// A data set with one kernel, width and estimator. Bitwise the same results for any number of threads.
class KernelRegression {
 public:
  /// x (n, d), y (n, m).
  KernelRegression(Points x, Points y, RegressionOptions options = {});
  ~KernelRegression();
  KernelRegression(KernelRegression&&) noexcept;

  /// f at the points `at` (queries, d).
  Predictions predict(const Points& at) const;
  /// Also a pointwise band f +- z sigma sqrt(sum_i l_i^2), where f = sum_i l_i y_i, z is the normal quantile of
  /// `level`, and sigma^2 is the mean square of the leave-one-out residuals. It covers the noise of the estimate, not
  /// its bias.
  Predictions predict_with_band(const Points& at, double level = 0.95) const;
  /// f_-i(x_i): each row predicted from the others.
  Predictions leave_one_out() const;
  /// Mean over rows and outputs of squared leave-one-out errors, each output in units of its variance. A row without
  /// neighbours is predicted by the mean of the others. At most `most_rows` rows are used, evenly chosen, each still
  /// predicted from all others.
  double leave_one_out_score(int64_t most_rows = std::numeric_limits<int64_t>::max()) const;

  /// l_i for each query and row of the data: (queries, n). For the local constant these are the attention weights.
  Tensor weights(const Points& at) const;
  /// exp(entropy) of the attention weights K_i / sum K of each query: the effective number of keys; 0 if no key has
  /// weight.
  std::vector<double> effective_keys(const Points& at) const;

  int64_t rows() const { return x_.rows; }
  int64_t dimension() const { return x_.width; }
  int64_t outputs() const { return y_.width; }
  const Points& x() const { return x_; }
  const RegressionOptions& options() const { return options_; }
  /// The same data with other options, without sorting again.
  KernelRegression with(RegressionOptions options) const;

 private:
  struct Data;
  KernelRegression(std::shared_ptr<const Data> data, RegressionOptions options);
  void check_options();
  void check_points(const char* op, const Points& at) const;
  /// Calls visit(query, sums, fit, found) for every point; blocks of queries run in parallel.
  using Visit = std::function<void(int64_t, const LocalSums&, const LocalFit&, bool)>;
  void for_each_query(const Points& at, SumsWanted wanted, const Visit& visit) const;
  /// The same for rows of the data, each left out; `query` is the index among the chosen ones.
  void for_each_row_left_out(std::span<const int64_t> chosen, const Visit& visit) const;
  Points left_out(std::span<const int64_t> chosen) const;
  void on_line(const Points& at, SumsWanted wanted, const Visit& visit) const;
  void rows_on_line(std::span<const int64_t> chosen, const Visit& visit) const;
  Predictions predict_at(const Points& at, std::optional<double> level) const;
  int order() const { return estimator_ == Estimator::local_linear ? 2 : 0; }

  std::shared_ptr<const Data> data_;
  const Points &x_, &y_;  // y as given
  RegressionOptions options_;
  KernelShape kernel_;  // constant for the average
  Estimator estimator_;
  std::vector<double> width_;  // (d)
};

/// z with P(|N(0, 1)| <= z) = level.
double normal_quantile(double level);

}  // namespace qkv
