// The one file that may.
#include <CLI/CLI.hpp>
