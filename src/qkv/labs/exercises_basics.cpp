// Exercises of 10.1 to 10.3 and of 11.1 to 11.3, in our own words: the question, a short answer, and the lab that works
// it out.
#include "qkv/labs/exercises.h"

namespace qkv::labs {

std::vector<Exercise> exercises_of_basics() {
  return {
      {{"10.1.1"},
       "cues",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.1.1: cues in translation"),
       tr("A decoder writes a translation token by token. What is its voluntary cue, what the involuntary "
          "one, and what is the sensory input?"),
       tr("The voluntary cue is the decoder's state, which knows what is still to be said: the query. The "
          "involuntary cues are what the source words offer, their keys; the sensory inputs are what they mean, "
          "their values.")},
      {{"10.1.2"},
       "cues",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.1.2: random scores"),
       tr("Make a random 10 × 10 matrix, apply softmax to every row and draw it as attention weights."),
       tr("Every row becomes a distribution: no weight is negative and every row sums to 1, but without a "
          "structure in the scores there is no pattern to see.")},
      {{"11.1.1"},
       "cues",
       ExerciseKind::experiment,
       1,
       tr("A database that forgives (exercise 11.1.1, English edition)"),
       tr("Databases can find keys that match only approximately. Which attention function does that?"),
       tr("A score that falls with the distance between query and key; the smaller its width, the closer "
          "to an exact look-up.")},
      {{"11.1.2"},
       "cues",
       ExerciseKind::worked,
       1,
       tr("The gradient is a covariance (exercise 11.1.2, English edition)"),
       tr("With the score $q^T k_i$ and values equal to the keys, show that the gradient of the output "
          "with respect to the query is the covariance of the keys under the weights."),
       tr("The derivative of softmax gives the mean of $k k^T$ minus the product of the means, which is "
          "the covariance; a saturated softmax has none, so nothing is learned.")},
      {{"11.1.3"},
       "cues",
       ExerciseKind::experiment,
       2,
       tr("A differentiable search engine (exercise 11.1.3, English edition)"),
       tr("Design a search engine that can be trained by gradients."),
       tr("Map queries into the space of the documents, score by dot products, and learn the map from clicks "
          "through the softmax.")},
      {{"11.1.4"},
       "cues",
       ExerciseKind::worked,
       1,
       tr("Squeeze-and-excitation as attention (exercise 11.1.4, English edition)"),
       tr("Read a squeeze-and-excitation network as an attention mechanism."),
       tr("The squeezed picture is the query and every channel a value; its gate is a softmax over taking it "
          "and leaving it, a sigmoid, so the gates need not sum to 1.")},
      {{"10.2.1"},
       "kernel-regression",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.2.1: does more data help the non-parametric estimator?"),
       tr("Does the non-parametric model get better with more training data?"),
       tr("Only up to a limit: at a fixed width the noise goes but the smoothing stays; the error goes to "
          "0 only if the width shrinks as the data grow.")},
      {{"10.2.2"},
       "kernel-regression",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.2.2: what does w mean, and why does it sharpen the weights?"),
       tr("What does the learned parameter $w$ tell, and why does it sharpen the weights?"),
       tr("$1/|w|$ is the width of the kernel; a larger $w$ makes the differences between scores larger, "
          "so softmax gives more to the nearest key.")},
      {{"10.2.3"},
       "kernel-regression",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.2.3: a hyper-parameter for the non-parametric estimator"),
       tr("How could a hyper-parameter be added to the non-parametric estimator so that it predicts better?"),
       tr("Divide the distance by a width and choose it by leave-one-out cross-validation; that beats "
          "width 1, a rule of thumb and the five gradient steps.")},
      {{"10.2.4"},
       "kernel-regression",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.2.4: other learned poolings"),
       tr("Design another learned attention pooling for this regression, train it and look at its weights."),
       tr("A width that depends on the place, two widths, a kernel with a learned reach, or a network that "
          "scores the pair: all can be trained, but fifty noisy points determine one width better than many "
          "parameters.")},
      {{"11.2.1"},
       "kernel-regression",
       ExerciseKind::worked,
       1,
       tr("Exercise 11.2.1: Parzen windows classify as Nadaraya-Watson does"),
       tr("Show that two-class classification by Parzen windows is the same as Nadaraya-Watson "
          "classification."),
       tr("The difference of the two density estimates is a sum of kernels times ±1; dividing it by the "
          "positive sum of all kernels does not change its sign.")},
      {{"11.2.2"},
       "kernel-regression",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.2.2: learning the width with and without leaving a point out"),
       tr("Learn the width by gradient steps on the training error: directly, and with the point itself "
          "left out. Does either overfit?"),
       tr("Directly, the best width is 0, since each point then predicts itself; with the point left out "
          "the optimum is a sensible width.")},
      {{"11.2.3"},
       "kernel-regression",
       ExerciseKind::worked,
       1,
       tr("Exercise 11.2.3: inputs of length 1"),
       tr("All inputs have length 1. What becomes of the squared distance in the exponent?"),
       tr("It is $2 - 2 x^T x_i$, so Gaussian attention is dot-product attention with a temperature.")},
      {{"11.2.4"},
       "kernel-regression",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.2.4: how fast should the width shrink?"),
       tr("How fast should the width shrink as the data grow, and does the dimension matter?"),
       tr("About as $n^{-1/(4+d)}$: more slowly in more dimensions, where neighbours are far.")},
      {{"10.3.1"},
       "scoring",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.3.1: do both scores still agree?"),
       tr("Change the keys of the toy example and look at the weights. Do additive and scaled dot-product "
          "attention still agree?"),
       tr("No: they agreed only because equal keys get equal weights under any score; with different keys "
          "each score has its own opinion.")},
      {{"10.3.2", "11.3.2"},
       "scoring",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.3.2: different lengths, matrix products only"),
       tr("With matrix products alone, design a score for queries and keys of different lengths."),
       tr("$q^T W k$: a matrix with as many rows as the query is long and as many columns as the key is "
          "long.")},
      {{"10.3.3"},
       "scoring",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.3.3: is the sum of the vectors a better score?"),
       tr("For queries and keys of equal length, is their sum a better score than the dot product?"),
       tr("No: the query adds the same to every score, and softmax drops it, so no query changes any "
          "weight.")},
      {{"11.3.1"},
       "scoring",
       ExerciseKind::worked,
       1,
       tr("Attention by distance (exercise 11.3.1, English edition)"),
       tr("Change dot-product attention so that it attends by distance."),
       tr("Subtract $\\frac{1}{2} \\lVert k_i \\rVert^2$ from the score of key $i$; the query's own length "
          "drops out of softmax.")},
      {{"11.3.3"},
       "scoring",
       ExerciseKind::experiment,
       1,
       tr("What a score costs (exercise 11.3.3, English edition)"),
       tr("What do scores cost in computation and in memory traffic, as sizes and numbers of queries, keys "
          "and values grow?"),
       tr("Computation grows with queries times keys times width, with a tanh instead of a multiply-add if "
          "the score is additive; keys and values are read from memory once per pass, so a single query waits "
          "for memory, and many at once do not.")},
  };
}

}  // namespace qkv::labs
