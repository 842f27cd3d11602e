// serve::train_bench_models with a bar.
#include "qkv/cli/page_models.h"

#include "qkv/cli/status_line.h"
#include "qkv/serve/bench_models.h"

namespace qkv::cli {

std::vector<serve::EngineFile> train_bench_models(const Global& global) {
  StatusLine status(global);
  return serve::train_bench_models(global.seed, [&](const Text& what, double done) {
    status.share(what.in(global.language), done, global.language);
  });
}

}  // namespace qkv::cli
