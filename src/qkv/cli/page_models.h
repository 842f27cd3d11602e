// The small models that tour and site put into pages, trained with a line of progress.
#pragma once

#include <vector>

#include "qkv/cli/command.h"
#include "qkv/serve/page_file.h"

namespace qkv::cli {

std::vector<serve::EngineFile> train_bench_models(const Global& global);

}  // namespace qkv::cli
