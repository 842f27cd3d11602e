// How training looks on a screen: text only, printing is the program's.
#pragma once

#include <string>

#include "qkv/train/fit.h"

namespace qkv {

/// "epoch 3/10 [######----] step 120/400  loss 0.1234  98,304 tok/s  0:12 left", at most `columns` wide.
std::string progress_bar(const Progress& p, int columns);
/// "epoch 3/10 step 120/400 loss 0.1234 98304 tok/s", for logs.
std::string progress_line(const Progress& p);
/// One JSON object of the same.
std::string progress_json(const Progress& p);
/// "0:12", "4:05", "1:02:03".
std::string duration(double seconds);

}  // namespace qkv
