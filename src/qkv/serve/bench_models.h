// The small models of pages without a server: trained once, then packed into the page.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/serve/page_file.h"

namespace qkv::serve {

/// What is being trained, and the share of all the work that is done, 0 to 1; called by one thread at a time.
using BenchModelsProgress = std::function<void(const Text& what, double done)>;

/// Trains a Transformer that translates (about 320,000 parameters), a language model of characters and a vision
/// Transformer on the built-in data, side by side, and returns their files.
std::vector<EngineFile> train_bench_models(uint64_t seed, const BenchModelsProgress& progress);

}  // namespace qkv::serve
