// The pictures of qkv regress.
#pragma once

#include "qkv/cli/regress_input.h"
#include "qkv/plot/figure.h"
#include "qkv/regression/kernel_regression.h"

namespace qkv::cli {

/// Data as circles, the fit as a line, the band around it; a panel an output. One column of x.
Figure fit_figure(const RegressInput& input, const Points& at, const Predictions& predictions, double level);

/// The weights of every point (rows) on every row of the data (columns), both in ascending order where there is one column of x.
Figure weights_figure(const RegressInput& input, const Points& at, const KernelRegression& regression);

}  // namespace qkv::cli
