// oneTBB outside its one file.
#include <tbb/parallel_for.h>
