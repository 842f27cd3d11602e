// Exercises of chapter 9 and of 10.4 and 10.5, in our own words: the question, a short answer, and the lab that works
// it out.
#include "qkv/labs/exercises.h"

namespace qkv::labs {

std::vector<Exercise> exercises_of_sequences() {
  return {
      {{"9.5.1"},
       "bahdanau",
       ExerciseKind::experiment,
       1,
       tr("Exercise 9.5.1: more examples, larger vocabularies"),
       tr("The loader reads only the first lines of the corpus. What happens to both vocabularies when it "
          "reads more of them?"),
       tr("Both grow, but more slowly than the number of examples, because most words of a new line have "
          "been seen before.")},
      {{"9.5.2"},
       "bahdanau",
       ExerciseKind::experiment,
       1,
       tr("Exercise 9.5.2: text without spaces"),
       tr("Chinese and Japanese are written without spaces. Is it a good idea to make tokens of words "
          "there?"),
       tr("Splitting at spaces fails there: a whole clause becomes one token that is hardly ever seen "
          "again; of characters, or of pieces learned from the text, few are new in a new sentence.")},
      {{"9.6.1"},
       "bahdanau",
       ExerciseKind::experiment,
       12,
       tr("Exercise 9.6.1: encoder and decoder of different kinds"),
       tr("Must encoder and decoder be networks of the same kind?"),
       tr("No: a decoder needs a state to start from and states to attend to, and any network that makes them "
          "will do; here a GRU translates what a convolution or a Transformer has read.")},
      {{"9.6.2"},
       "bahdanau",
       ExerciseKind::experiment,
       8,
       tr("Exercise 9.6.2: other uses of an encoder and a decoder"),
       tr("What else than translation can be done with an encoder and a decoder?"),
       tr("Whatever turns one sequence into another of a different length: here numbers in words into digits "
          "and dates into a standard form; elsewhere speech into text, a text into its summary, an image into "
          "a caption.")},
      {{"9.7.1"},
       "bahdanau",
       ExerciseKind::experiment,
       3,
       tr("Exercise 9.7.1: better settings"),
       tr("Can other settings give better translations?"),
       tr("Yes: a learning rate that is too small leaves the training unfinished, and wider states translate "
          "better here; which settings are best depends on data and time, so they have to be tried.")},
      {{"9.7.2"},
       "bahdanau",
       ExerciseKind::experiment,
       6,
       tr("Exercise 9.7.2: without masking the loss"),
       tr("Train again without masking the loss. What happens, and why?"),
       tr("The reported loss becomes misleadingly small, because padding is easy to predict; the "
          "translations stay about as good.")},
      {{"9.7.3"},
       "bahdanau",
       ExerciseKind::experiment,
       2,
       tr("Exercise 9.7.3: encoder and decoder of different sizes"),
       tr("If the encoder has other layers or another width than the decoder, how does the decoder get its "
          "first state?"),
       tr("A learned linear layer turns the encoder's last state into the first state of every decoder "
          "layer; it learns with the rest.")},
      {{"9.7.4"},
       "bahdanau",
       ExerciseKind::experiment,
       2,
       tr("Exercise 9.7.4: feeding predictions back"),
       tr("In training, feed the decoder its own prediction in place of the true token. What changes?"),
       tr("Learning is harder and the training loss higher, since the inputs are wrong at first; in "
          "exchange the decoder has seen its own mistakes.")},
      {{"9.7.5"},
       "bahdanau",
       ExerciseKind::experiment,
       2,
       tr("Exercise 9.7.5: LSTM in the baseline"),
       tr("Put an LSTM in place of the GRU in the model without attention."),
       tr("The cell changes little: what limits the baseline is the one vector through which the whole "
          "sentence must pass.")},
      {{"9.7.6"},
       "bahdanau",
       ExerciseKind::experiment,
       4,
       tr("Exercise 9.7.6: other output layers"),
       tr("How else could the output layer of the decoder be designed?"),
       tr("It may share its matrix with the target embedding, which saves a vocabulary-sized matrix, or read "
          "the previous word beside the state through a hidden layer; both learn here.")},
      {{"10.4.1", "11.4.1"},
       "bahdanau",
       ExerciseKind::experiment,
       18,
       tr("Exercise 10.4.1 (English edition 11.4.1): LSTM instead of GRU"),
       tr("Put an LSTM in place of the GRU in the model with attention."),
       tr("Attention works unchanged, with the hidden state as the query; an LSTM has four gates to compute "
          "where a GRU has three, so an epoch takes longer, and here it ends no better.")},
      {{"10.4.2", "11.4.2"},
       "bahdanau",
       ExerciseKind::experiment,
       9,
       tr("Exercise 10.4.2 (English edition 11.4.2): scaled dot-product scoring"),
       tr("Score with scaled dot products in place of the additive score. How does it affect training?"),
       tr("An epoch takes a little less time, without a tanh and without matrices for the score, but the model "
          "learns less from it, since its states must then serve as queries and keys themselves.")},
      {{"10.5.1", "11.5.1"},
       "multi-head",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.5.1: the weights of the heads"),
       tr("Draw the weights of the several heads."),
       tr("Trained heads look in different places: for each question that the task asks there is a head "
          "that looks at the answer.")},
      {{"10.5.2", "11.5.2"},
       "multi-head",
       ExerciseKind::experiment,
       1,
       tr("Exercise 10.5.2: which heads matter"),
       tr("How would you measure the importance of heads in a trained model, to remove the least useful?"),
       tr("Close a head and see how the loss rises, or take the gradient of a gate on it; both find heads "
          "that can go, and `qkv prune` removes them for good.")},
  };
}

}  // namespace qkv::labs
