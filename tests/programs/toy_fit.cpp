// Trains the toy model for 200 steps with a checkpoint every step, resuming if there is one: the program that tests
// kill.
//   toy_fit CHECKPOINT METRICS THREADS
#include <cstdio>
#include <cstdlib>

#include "programs/toy_task.h"
#include "qkv/core/parallel.h"
#include "qkv/train/metrics.h"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  using namespace qkv;
  set_threads(std::atoi(arguments[3]));
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  MetricsFile metrics(arguments[2], 1);
  Observer* observers[] = {&metrics};
  const FitResult result = fit(all, adam,
                               {.epochs = 40,
                                .rate = constant_rate(0.01f),
                                .clip = 1,
                                .seed = 3,
                                .checkpoint = arguments[1],
                                .checkpoint_every = 1},
                               tests::ToyTask{model}, observers);
  std::printf("step %ld loss %.9g\n", static_cast<long>(result.progress.step), result.progress.epoch_loss);
}
