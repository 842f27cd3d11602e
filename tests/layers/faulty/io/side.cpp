// Figures write files, but files know no figures.
#include "qkv/plot/figure.h"
