// The machine that the program runs on.
#include "qkv/cli/machine.h"

#include <sys/utsname.h>

#include <fstream>

namespace qkv::cli {

std::string cpu_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  utsname machine{};
  return ::uname(&machine) == 0 ? machine.machine : "unknown";
}

}  // namespace qkv::cli
