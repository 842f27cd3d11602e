// nn reaches past ops.
#include "linear.h"
#include "qkv/kernels/gemm.h"
