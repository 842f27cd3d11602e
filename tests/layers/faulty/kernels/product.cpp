// oneDNN outside its one file, and a Tensor in a kernel.
#include <oneapi/dnnl/dnnl.h>

#include "qkv/tensor/tensor.h"
