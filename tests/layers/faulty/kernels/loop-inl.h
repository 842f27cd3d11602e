// Highway is at home here; other libraries are not.
#include <hwy/highway.h>
#include <fmt/format.h>
