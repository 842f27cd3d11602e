// Third-party headers in a header of ours.
#include <hwy/highway.h>
#include <zlib.h>
#include <nlohmann/json_fwd.hpp>
