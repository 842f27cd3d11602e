// Speaks with run.py, a line at a time: "load CASE IN.npz", "results OUT.npz", "time REPEATS", "threads N". Answers "ok" and, for
// times, the seconds of a repetition.
#include "side.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "qkv/core/parallel.h"
#include "qkv/io/npz.h"

namespace qkv::peers {

std::unique_ptr<Case> make_case(const std::string& name, const Arrays& inputs) {
  for (auto* make : {engine_case, attention_case, regression_case, model_case})
    if (auto found = make(name, inputs)) return found;
  fail("unknown case \"", name, "\"");
}

namespace {

// Both sides warm up in every round: caches and sleeping threads are the other side's doing.
double seconds_of(Case& work, int64_t repeats) {
  for (int64_t i = 0; i < (repeats + 4) / 5; ++i) work.run();
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
    std::printf("%.9g ", seconds_of(*work, std::stoll(first)));
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
