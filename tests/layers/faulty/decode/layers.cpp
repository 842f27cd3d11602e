// Search that knows what models are made of.
#include "qkv/nn/layers.h"
