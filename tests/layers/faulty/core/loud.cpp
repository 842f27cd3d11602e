// Library code that prints, and code that only looks as if it did.
#include <cstdio>
#include <iostream>

void loud(char* buffer) {
  std::snprintf(buffer, 8, "printf(");  // printf( in a comment
  std::cout << "hello";
  std::printf("%s", buffer);
  std::fputs("text", stderr);
  const char* fine = "std::cerr in a string";
}
