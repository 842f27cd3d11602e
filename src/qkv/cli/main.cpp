// The program.
#include <cstdio>

#include "qkv/core/version.h"

int main() { std::printf("qkv %s\n", qkv::version()); }
