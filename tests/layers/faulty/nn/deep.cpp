// nn reaches past ops.
#include "qkv/kernels/gemm.h"
#include "linear.h"
