// A model knows no optimizer.
#include "qkv/attention/attend.h"
#include "qkv/train/adam.h"
