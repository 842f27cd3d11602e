// The one file that may.
#include <tbb/parallel_for.h>
