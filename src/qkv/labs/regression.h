// What the steps of lab 10.2 share: the data of both editions, fits on the test grid, the 300 runs, and small
// statistics.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/rng.h"
#include "qkv/labs/lab.h"
#include "qkv/regression/bandwidth.h"

namespace qkv::labs::regression {

using Vector = std::vector<double>;

struct Sample {
  Vector x, y;  // x ascending
};

/// 2 sin x + x^0.8, the curve of the Chinese edition; 2 sin x + x, that of the English one.
double zh_truth(double x);
double en_truth(double x);
/// x uniform in (0, 5); noise of standard deviation 0.5 (zh) and 1 (en).
Sample zh_sample(const Rng& rng, int64_t n = 50);
Sample en_sample(const Rng& rng, int64_t n = 40);
/// The random numbers of a lab started with this seed.
Rng rng_of(uint64_t seed);
/// The page's training data, and what five steps from a random w learn from it: run `seed` of book_runs().
Sample page_sample(const Page& page);
Learned page_learned(const Page& page);
/// The explorer's bench with these points. It begins with page_sample of seed 0, which need not be in the address.
report::BenchLink bench(const Page& page, const Sample& sample);

/// 0, 0.1, ..., 4.9, and the truth there.
const Vector& test_x();
const Vector& zh_test_y();
const Vector& en_test_y();
Vector values(double (*f)(double), const Vector& x);

KernelRegression model(const Sample& sample, const RegressionOptions& options = {});
/// Predictions at the test inputs; `width` is that of a Gaussian.
Vector fit(const Sample& sample, double width);
Vector fit(const Sample& sample, const RegressionOptions& options);

/// A matrix with one column, (n, 1).
Tensor column(const Vector& v);
/// Mean squared error against the Chinese edition's truth at the test inputs.
double zh_error(const Vector& prediction);
/// L(w), the summed squared leave-one-out error that learned pooling minimises.
double leave_one_out_loss(const Sample& sample, double w);

double mean(const Vector& v);
double mean_square_difference(const Vector& a, const Vector& b);
double correlation(const Vector& a, const Vector& b);
/// Sum of squared second differences: how much a curve bends.
double roughness(const Vector& curve);
/// The number of values above a limit.
int64_t count_above(const Vector& v, double limit);
/// The least-squares slope of y over x.
double slope(const Vector& x, const Vector& y);

/// One experiment of the book: fresh data, three poolings.
struct BookRun {
  double average, plain, learned;  // mean squared error on the test inputs
  double w_start, w_first, w;      // before, after one step, after five
  Vector losses;                   // (5)
  double rough_plain, rough_learned;
  double keys_plain, keys_learned;  // mean effective number of keys
  Vector error_plain;               // (50): prediction - truth
  // Correlation with the density of the data over the test inputs: |error| of plain, effective keys of learned.
  double error_with_density, keys_with_density;
};

/// Seeds 0 to 299; run k has the data of the page with `--seed k`.
const std::vector<BookRun>& book_runs();
/// One number per run.
Vector collect(double (*number)(const BookRun&));

/// Truth, prediction and data as the book draws them.
std::vector<Series> fit_series(const Sample& sample, const Vector& truth, const Vector& prediction);
Figure fit_figure(const Sample& sample, const Vector& prediction);
/// Weights (queries, keys) of a fit as a heat map with the book's labels.
Figure weights_figure(const Tensor& weights, const std::vector<Label>& titles = {});

/// A row for named_table: its name in words, then numbers.
using NamedRow = std::pair<Text, std::vector<std::string>>;

// Steps, one file per subject.
void three_points_step(Page& page);
void attend_step(Page& page);
void batched_product_step(Page& page);
void errata_step(Page& page);
void average_step(Page& page);
void plain_step(Page& page);
void learned_step(Page& page);
void runs_step(Page& page);
void stuck_step(Page& page);
void notes_step(Page& page);
void kernels_step(Page& page);
void widths_step(Page& page);
void more_data_step(Page& page);
void meaning_of_w_step(Page& page);
void width_choice_step(Page& page);
void new_poolings_step(Page& page);
void parzen_step(Page& page);
void leaving_out_step(Page& page);
void unit_norm_step(Page& page);
void shrinking_step(Page& page);

}  // namespace qkv::labs::regression
