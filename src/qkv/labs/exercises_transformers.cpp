// Exercises of 10.6, 10.7, 11.8 and 11.9, in our own words: the question, a short answer, and the lab that works it
// out.
#include "qkv/labs/exercises.h"

namespace qkv::labs {

std::vector<Exercise> exercises_of_transformers() {
  return {
      {{"10.6.1", "11.6.1"},
       "self-attention",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.6.1: a deep stack of self-attention"),
       tr("What could go wrong in a deep stack of self-attention layers with positional encoding?"),
       tr("Every layer averages, so tokens become equal and positions are lost; residual connections, and "
          "a norm before the sublayer, keep them apart.")},
      {{"10.6.2", "11.6.2"},
       "self-attention",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.6.2: positions that are learned"),
       tr("Design a positional encoding that is learned."),
       tr("A table with one learned row per position: as good as sines up to the trained length, and "
          "useless beyond it.")},
      {{"11.6.3"},
       "self-attention",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.6.3 (English edition): learned relative positions"),
       tr("Learn an embedding for every offset between query and key."),
       tr("A learned number per offset, added to the score, solves the task, can be read off, and works beyond "
          "the trained length, since an offset means the same everywhere.")},
      {{"10.7.1", "11.7.1"},
       "transformer",
       ExerciseKind::experiment,
       15,
       tr("Exercise 10.7.1 (English edition 11.7.1): a deeper Transformer"),
       tr("How does a deeper Transformer change speed and translation?"),
       tr("Every layer adds about the same time. Trained to the end, two layers translate better than one; four "
          "have to be helped to start, by norms before the sublayers or by a long warm-up.")},
      {{"10.7.2", "11.7.2"},
       "transformer",
       ExerciseKind::experiment,
       3,
       tr("Exercise 10.7.2 (English edition 11.7.2): additive in place of scaled dot-product attention"),
       tr("Is it a good idea to use additive attention in a Transformer?"),
       tr("No: it learns too, but it pays a tanh per feature for every pair of positions, which makes it slower "
          "the longer the input is.")},
      {{"10.7.3", "11.7.3"},
       "transformer",
       ExerciseKind::experiment,
       2,
       tr("Exercise 10.7.3 (English edition 11.7.3): a language model"),
       tr("For a language model: encoder, decoder, or both?"),
       tr("The decoder alone, without attention to a source: its mask makes every position predict the "
          "next token from those before it.")},
      {{"10.7.4", "11.7.4"},
       "long-inputs",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.7.4 (English edition 11.7.4): why long inputs are hard"),
       tr("What makes very long inputs hard for a Transformer?"),
       tr("Every pair of tokens costs a product, so time grows with the square of the length, and so does "
          "memory if the weights are stored.")},
      {{"10.7.5", "11.7.5"},
       "long-inputs",
       ExerciseKind::experiment,
       30,
       tr("Exercise 10.7.5 (English edition 11.7.5): seven ways out"),
       tr("How can a Transformer be made cheaper in time and memory?"),
       tr("Never store the weights, which costs nothing in quality; beyond that, look at fewer pairs or "
          "replace softmax by sums, and pay where far tokens matter.")},
      {{"10.7.6"},
       "transformer",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.7.6: images without convolution"),
       tr("How could a Transformer classify images without convolution?"),
       tr("Cut the image into patches, map each to a vector, add positions, run an encoder and classify "
          "its mean or a class token; section 11.8 trains it.")},
      {{"11.8.1"},
       "vision-transformer",
       ExerciseKind::experiment,
       2,
       tr("Exercise 11.8.1: the size of the image"),
       tr("How does the size of the image change the time of training?"),
       tr("With patches of one size the number of tokens grows with the area, and so does most of the work; "
          "that of attention grows with the square of the area.")},
      {{"11.8.2"},
       "vision-transformer",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.8.2: the mean of the patches"),
       tr("Classify the mean of the patches instead of the class token. What happens to accuracy?"),
       tr("Hardly anything here: the mean of the patches says about as much as a token that has to learn where to "
          "look.")},
      {{"11.8.3"},
       "vision-transformer",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.8.3: better settings"),
       tr("Which settings improve the accuracy?"),
       tr("Here small patches: with a few large ones a linear layer has to recognise most of the shape in "
          "one step.")},
      {{"11.9.1"},
       "language-models",
       ExerciseKind::experiment,
       4,
       tr("Exercise 11.9.1: several tasks in one minibatch"),
       tr("Can one minibatch mix tasks when T5 is fine-tuned? When GPT-2 is?"),
       tr("Yes, both: every example says in its own text which task it is, and the loss counts only the "
          "answer.")},
      {{"11.9.2"},
       "language-models",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.9.2: what a language model is good for"),
       tr("What can one do with a strong language model?"),
       tr("Whatever asks which text is likelier: here, which of two sentences is in order; as well completing, "
          "correcting, ranking, and, for large models with examples in the prompt, tasks that they were never trained "
          "for.")},
      {{"11.9.3"},
       "language-models",
       ExerciseKind::experiment,
       3,
       tr("Exercise 11.9.3: where the new layer goes"),
       tr("Where should layers be added to fine-tune a language model for classification?"),
       tr("On a state that has seen the whole text: the last token of a causal model, any token of a "
          "masked one.")},
      {{"11.9.4"},
       "language-models",
       ExerciseKind::experiment,
       1,
       tr("Exercise 11.9.4: where a decoder alone falls short"),
       tr("What limits a decoder-only model if the whole input is known, as in translation?"),
       tr("Its mask: the state of a word cannot know the words after it, though they are there to be read.")},
  };
}

}  // namespace qkv::labs
