// A Tensor in a kernel.
#include "qkv/tensor/tensor.h"
