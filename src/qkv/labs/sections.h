// One function a lab, each in its own file.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs {

Lab engine_lab();      // 0: how gradients are made, checked and used
Lab regression_lab();  // 10.2: attention pooling by kernel regression

}  // namespace qkv::labs
