// Highway is allowed here; other libraries are not.
#include <fmt/format.h>
#include <hwy/highway.h>
