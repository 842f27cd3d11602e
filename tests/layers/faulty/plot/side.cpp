// Neighbours do not know each other.
#include "qkv/io/npy.h"
