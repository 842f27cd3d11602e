// A command that includes CLI11 itself; printing and any layer are fine here.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "qkv/models/transformer.h"

void info() { std::printf("fine\n"); }
