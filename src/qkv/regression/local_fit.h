// What an estimator needs to know about the keys around one query, and its result: sums in, prediction out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// average: the mean of all y (attention with a constant score). local_constant: Nadaraya-Watson. local_linear: a
/// weighted line through the neighbours, evaluated at the query; its bias does not change at the border of the data.
enum class Estimator { average, local_constant, local_linear };
constexpr std::array<std::string_view, 3> names(Estimator) { return {"average", "local-constant", "local-linear"}; }

/// order 0: sum K and sum K y; order 2: also their first and second moments in u = (x - query) / h. squares: also sums
/// of K^2, K^2 u and K^2 u^2, for bands.
struct SumsWanted {
  int order = 0;
  bool squares = false;
};

/// Sums over keys of weights K_i around a reference point r, in units of the width: u_i = (x_i - r) / h.
struct LocalSums {
  LocalSums(int64_t dimension, int64_t outputs);
  void clear();
  /// Allocates s1 to q2 and t1, which a slope needs. A line always has them; in several dimensions the d x d numbers
  /// are allocated only on request.
  void make_room_for_slopes();

  int64_t d, m;
  double s0 = 0;               // sum K
  double q0 = 0;               // sum K^2
  std::vector<double> s1, q1;  // (d): sum K u, sum K^2 u
  std::vector<double> s2, q2;  // (d, d): sum K u u^T, sum K^2 u u^T
  std::vector<double> t0;      // (m): sum K y
  std::vector<double> t1;      // (m, d): sum K y u
  std::vector<double> offset;  // (d): (r - query) / h
};

/// The prediction of one query as sum_i l_i y_i.
class LocalFit {
 public:
  LocalFit(int64_t dimension, int64_t outputs, Estimator estimator);

  /// False if no key has weight. Then prediction (m) and the sum of l_i^2 are not set.
  bool solve(const LocalSums& sums);
  std::span<const double> prediction() const { return prediction_; }
  /// sum_i l_i^2: the variance of the prediction in units of the noise variance. Needs the q sums.
  double squared_weights(const LocalSums& sums) const;
  /// l_i of a key with weight K_i at u_i (d).
  double weight(const LocalSums& sums, double kernel_weight, std::span<const double> u) const;
  /// The smallest pivot of the keys' spread matrix: the mean square of u along the worst direction (local linear only).
  double least_spread() const { return least_spread_; }

 private:
  void solve_slope(const LocalSums& sums);
  int64_t d_, m_;
  Estimator estimator_;
  double least_spread_ = 0;
  std::vector<double> prediction_, mean_, gain_, factor_, target_;
  std::vector<int64_t> order_;
};

/// Spread of the keys below which a direction gets no slope: (1e-5 h)^2.
inline constexpr double kLeastSpread = 1e-10;

}  // namespace qkv
