// The input of qkv regress: columns of .csv and .npy files, and points on the command line.
#pragma once

#include <string>
#include <vector>

#include "qkv/report/regression.h"

namespace qkv::cli {

/// Reads the columns; without names, y is the last column and x all others.
report::RegressionData read_regress_data(const std::string& path, std::vector<std::string> x,
                                         std::vector<std::string> y, Missing missing);

/// Points to predict at: each text is a point, its numbers separated by commas (with one column of x, several points),
/// or a .csv or .npy file.
Points read_points(const std::vector<std::string>& texts, const std::vector<std::string>& x_names);

}  // namespace qkv::cli
