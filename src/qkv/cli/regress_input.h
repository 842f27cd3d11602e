// Where qkv regress gets its numbers from: columns of .csv and .npy files, and points on the command line.
#pragma once

#include <string>
#include <vector>

#include "qkv/report/regression.h"

namespace qkv::cli {

/// Reads the columns; without names x is all columns but y, and y the last one.
report::RegressionData read_regress_data(const std::string& path, std::vector<std::string> x,
                                         std::vector<std::string> y, Missing missing);

/// Points to predict at: each text is a point (several numbers with commas; with one column of x, several points), or a
/// .csv or .npy file.
Points read_points(const std::vector<std::string>& texts, const std::vector<std::string>& x_names);

}  // namespace qkv::cli
