// A lab that knows the command line, and one that reads files on its own; printing is fine here.
#include <cstdio>

#include "qkv/cli/command.h"
#include "qkv/io/npy.h"

void lab() { std::printf("fine\n"); }
