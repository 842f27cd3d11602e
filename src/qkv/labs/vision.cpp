// Lab 11.8: images as sequences of patches.
#include "qkv/labs/vision.h"

#include "qkv/core/parallel.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/work.h"

namespace qkv::labs {
namespace vision {
namespace {

// Keeps the accuracy of every epoch.
class Follower : public Observer {
 public:
  Follower(Seer& seer, WorkObserver work) : seer_(seer), work_(work) {}
  void step(const Progress& p) override { work_.step(p); }
  void epoch(const Progress& p) override {
    seer_.epochs.push_back(static_cast<double>(p.epoch));
    seer_.accuracy.push_back(p.valid_accuracy.value_or(0));
  }
  void finished(const Progress& p) override { work_.finished(p); }

 private:
  Seer& seer_;
  WorkObserver work_;
};

VisionConfig configuration(uint64_t seed) {
  VisionConfig c;
  c.data.images = "pictures";
  c.data.image_size = kSide;
  c.data.picture_count = 3000;
  c.data.picture_seed = static_cast<int64_t>(seed);
  c.data.mean = c.data.deviation = {0.25};
  c.model = {.patch = kPatch, .hidden = 48, .ffn = 96, .heads = 4, .layers = 2};
  c.model.dropout = c.model.embedding_dropout = 0;
  c.training.epochs = 10;
  c.training.batch_rows = 32;
  c.training.rate = 3e-3;
  c.training.schedule = ScheduleKind::cosine;
  c.training.warmup = 60;
  c.training.keep = KeptWeights::last;
  c.training.seed = static_cast<int64_t>(seed);
  return c;
}

}  // namespace

const Seers& seers(Page& page) {
  Seers& all = page.shared<Seers>();
  if (all.cls.run) return all;
  const VisionConfig base = configuration(page.seed());
  std::vector<std::pair<Seer*, VisionConfig>> tasks;
  for (Seer* seer : {&all.cls, &all.mean, &all.placeless, &all.coarse}) tasks.emplace_back(seer, base);
  tasks[1].second.model.pooling = Pooling::mean;
  tasks[2].second.model.positions = PositionKind::none;
  tasks[3].second.model.patch = kSide / 2;
  Work work(page, tr("training four vision Transformers"), tasks.size());
  parallel_for(std::ssize(tasks), 1e10, [&](int64_t i) {
    const SerialScope serial;
    auto& [seer, config] = tasks[static_cast<size_t>(i)];
    seer->run = std::make_unique<VisionRun>(config, "");
    Follower follower(*seer, WorkObserver(work, static_cast<size_t>(i)));
    Observer* observers[] = {&follower};
    seer->run->train(observers);
  });
  return all;
}

}  // namespace vision

Lab vision_lab() {
  using namespace vision;
  return {"11.8",
          "vision-transformer",
          tr("The vision Transformer"),
          {patches_of_an_image, order_of_patches, slow(training), slow(where_it_looks), image_size,
           slow(mean_of_patches), slow(better)},
          false,
          15,
          2};
}

}  // namespace qkv::labs
