// A run folder of an earlier version: it can be read, and its training resumes where it stopped.
#include "qkv/io/safetensors.h"
#include "support/files.h"
#include "unit/tasks/translation_fixture.h"

namespace qkv {
namespace {

TEST_F(TranslationRunTest, AFolderOfAnEarlierVersionResumes) {
  fs::copy(QKV_SOURCE_DIR "/tests/golden/old_run", run_folder(), fs::copy_options::recursive);
  const std::string file = run_folder() + "/config.yaml";
  std::string content = qkv_test::file_bytes(file);
  content.replace(content.find("PAIRS"), 5, pairs());
  std::ofstream(file) << content;
  const Checkpoint before = load_checkpoint(run_folder() + "/checkpoints/last.safetensors");
  ASSERT_EQ(before.integer("companion.averaged"), 6);

  const TranslationConfig config = read_run_config(file);
  EXPECT_EQ(config.training.epochs, 100);
  TranslationRun run(config, run_folder());
  const TrainResult result = run.train();
  EXPECT_EQ(result.progress.steps_here, 335);
  EXPECT_EQ(result.kept, Kept::mean_of_last);
  const Checkpoint after = load_checkpoint(run_folder() + "/checkpoints/last.safetensors");
  EXPECT_EQ(after.integer("companion.averaged"), 90);
  EXPECT_LT(std::bit_cast<double>(after.integer("companion.best_bits")),
            std::bit_cast<double>(before.integer("companion.best_bits")));
  // The file is as before: the same tensors and counters with the same names.
  for (const auto& [name, tensor] : before.tensors) EXPECT_TRUE(after.tensors.contains(name)) << name;
  for (const auto& [name, value] : before.counters) EXPECT_TRUE(after.counters.contains(name)) << name;
}

}  // namespace
}  // namespace qkv
