// The one file that may.
#include <oneapi/dnnl/dnnl.h>
