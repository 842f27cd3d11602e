// Obeys run.py, line by line: "load CASE IN.npz", "results OUT.npz", "time REPEATS", "once", "threads N", "peak",
// "memory". Answers with the seconds per repetition, the GFLOP/s of multiply-adds or the peak memory in bytes, where
// asked for, and then "ok".
#include "side.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "qkv/core/parallel.h"
#include "qkv/io/npz.h"

namespace qkv::peers {

std::unique_ptr<Case> make_case(const std::string& name, const Arrays& inputs) {
  for (auto* make :
       {engine_case, attention_case, regression_case, model_case, transformer_case, language_case, vision_case})
    if (auto found = make(name, inputs)) return found;
  fail("unknown case \"", name, "\"");
}

namespace {

// getrusage would report the size of the program that started this one, if that was larger.
double most_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return 1024 * std::stod(line.substr(6));
  fail("[peers] /proc/self/status does not give the memory of this process");
}

// Both sides warm up in every round: the other side has filled the caches and let our threads go to sleep.
double seconds_of(Case& work, int64_t repeats, int64_t before) {
  for (int64_t i = 0; i < before; ++i) work.run();
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < repeats; ++i) work.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(repeats);
}

void answer(std::unique_ptr<Case>& work, const std::string& line) {
  std::istringstream words(line);
  std::string verb, first, second;
  words >> verb >> first >> second;
  if (verb == "load") {
    work = make_case(first, read_npz(second));
  } else if (verb == "threads") {
    set_threads(std::stoi(first));
  } else if (verb == "results") {
    write_npz(first, work->results());
  } else if (verb == "time") {
    const int64_t repeats = std::stoll(first);
    std::printf("%.9g ", seconds_of(*work, repeats, (repeats + 4) / 5));
  } else if (verb == "once") {
    std::printf("%.9g ", seconds_of(*work, 1, 0));
  } else if (verb == "peak") {
    std::printf("%.9g ", fma_peak());
  } else if (verb == "memory") {
    std::printf("%.9g ", most_bytes());
  } else {
    fail("unknown request \"", line, "\"");
  }
}

}  // namespace
}  // namespace qkv::peers

int main() {
  std::unique_ptr<qkv::peers::Case> work;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      qkv::peers::answer(work, line);
      std::printf("ok\n");
    } catch (const std::exception& e) {
      std::printf("error %s\n", e.what());
    }
    std::fflush(stdout);
  }
}
