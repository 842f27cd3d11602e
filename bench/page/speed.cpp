// The speed table of qkv bench as JSON, of the engine under Node: web/engine/speed.mjs puts the program's beside it.
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "qkv/cli/bench.h"

int main(int count, char** words) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const qkv::cli::BenchLine& line : qkv::cli::engine_lines()) {
    const std::string name = line.name.in(qkv::Language::en);
    if (count > 1 && name.find(words[1]) == name.npos) continue;
    const qkv::cli::Speed speed = line.measure();
    lines.push_back(
        {{"name", name}, {"seconds", speed.seconds}, {"rate", speed.work / speed.seconds}, {"unit", speed.unit}});
  }
  std::puts(nlohmann::ordered_json{{"lines", lines}}.dump(2).c_str());
}
