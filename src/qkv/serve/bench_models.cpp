// Three presets, cut down to what a page can carry and a tour can wait for.
#include "qkv/serve/bench_models.h"

#include <stdlib.h>

#include <array>
#include <bit>
#include <filesystem>
#include <map>
#include <mutex>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/io/safetensors.h"
#include "qkv/tasks/language/run.h"
#include "qkv/tasks/run_config.h"
#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/vision/run.h"

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = int64_t{4} << 20;

// A folder that goes with its owner.
class ScratchFolder {
 public:
  ScratchFolder() : path_((fs::temp_directory_path() / "qkv-benches-XXXXXX").string()) {
    require(::mkdtemp(path_.data()) != nullptr, "cannot make a temporary folder: {path}", "path"_a = path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Adds up what the trainings report.
class Sum {
 public:
  explicit Sum(const BenchModelsProgress& progress) : progress_(progress) {}
  void at(size_t part, double share) {
    const std::lock_guard lock(mutex_);
    done_.at(part) = share;
    double all = 0;
    for (const double one : done_) all += one / static_cast<double>(done_.size());
    progress_(tr("training the small models of the benches"), all);
  }

 private:
  const BenchModelsProgress& progress_;
  std::mutex mutex_;
  std::array<double, 3> done_{};
};

class Follower : public Observer {
 public:
  Follower(Sum& sum, size_t part) : sum_(sum), part_(part) {}
  void step(const Progress& p) override { sum_.at(part_, static_cast<double>(p.step) / static_cast<double>(p.steps)); }

 private:
  Sum& sum_;
  size_t part_;
};

template <class Config>
Config preset(const char* name, uint64_t seed) {
  Config config = std::get<Config>(RunConfig::preset(name).of);
  config.training.seed = static_cast<int64_t>(seed);
  return config;
}

// Weights rounded to bfloat16 pack to less than half the size. Every reader of the file has the same numbers.
void round_weights(const std::string& folder) {
  const std::string path = folder + "/model.safetensors";
  std::map<std::string, Tensor> rounded;
  std::map<std::string, std::string> metadata;
  {
    const SafetensorsFile file(path);
    metadata = file.metadata();
    for (const std::string& name : file.names()) {
      const Tensor exact = file.tensor(name);
      std::vector<float> values(exact.ptr(), exact.ptr() + exact.numel());
      for (float& v : values) v = std::bit_cast<float>((std::bit_cast<uint32_t>(v) + 0x8000u) & ~0xffffu);
      rounded.emplace(name, Tensor(exact.shape(), std::move(values)));
    }
  }
  write_safetensors(path, rounded, metadata);
}

template <class Run, class Config>
void train(const Config& config, const std::string& folder, Sum& sum, size_t part) {
  Run run(config, folder);
  Follower follower(sum, part);
  Observer* const observers[] = {&follower};
  run.train(observers);
  round_weights(folder);
}

void train_translation(uint64_t seed, const std::string& folder, Sum& sum) {
  auto config = preset<TranslationConfig>("transformer", seed);
  config.data.corpus_size = 16000;
  config.training.epochs = 4;
  config.training.warmup = 100;
  train<TranslationRun>(config, folder, sum, 0);
}

void train_language(uint64_t seed, const std::string& folder, Sum& sum) {
  auto config = preset<LanguageConfig>("lm", seed);
  config.data.corpus_size = 12000;
  config.training.epochs = 4;
  config.training.rate = 0.005;
  train<LanguageRun>(config, folder, sum, 1);
}

void train_vision(uint64_t seed, const std::string& folder, Sum& sum) {
  auto config = preset<VisionConfig>("vit", seed);
  config.data.picture_count = 8000;
  config.model.layers = 2;
  config.model.hidden = 48;
  config.model.ffn = 96;
  config.training.epochs = 10;
  config.training.batch_rows = 32;
  config.training.rate = 0.003;
  config.training.warmup = 100;
  train<VisionRun>(config, folder, sum, 2);
}

}  // namespace

std::vector<EngineFile> train_bench_models(uint64_t seed, const BenchModelsProgress& progress) {
  const ScratchFolder scratch;
  Sum sum(progress);
  // The longest first, so that two cores end at about the same time.
  const std::pair<const char*, void (*)(uint64_t, const std::string&, Sum&)> all[] = {
      {"language", train_language}, {"vision", train_vision}, {"translation", train_translation}};
  // Models this small are not worth splitting within a step: each is trained on one thread.
  parallel_for(std::ssize(all), 1e12, [&](int64_t i) {
    const SerialScope serial;
    const auto& [name, run] = all[static_cast<size_t>(i)];
    run(seed, scratch.path() + "/" + name, sum);
  });
  std::vector<EngineFile> out;
  for (const auto& [name, run] : all) {
    const auto files = engine_files(scratch.path() + "/" + name, name, kMostBytes);
    check(!files.empty(), "[train_bench_models] the engine cannot read ", name);
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

}  // namespace qkv::serve
