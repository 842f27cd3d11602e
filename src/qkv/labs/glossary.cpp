// The words of the chapter and what they mean.
#include "qkv/labs/appendix.h"

namespace qkv::labs {

std::vector<Term> glossary() {
  return {
      {"q", tr("query"), tr("What is wanted: the voluntary cue."), "cues-the-words", "AttendCall"},
      {"k", tr("key"), tr("What an input offers to be compared with: the involuntary cue."), "cues-the-words",
       "AttendCall"},
      {"v", tr("value"), tr("What is taken from an input: the sensory input."), "cues-the-words", "AttendCall"},
      {"f", tr("attention pooling"), tr("The mean of the values with the weights of one query."), "pooling-diagram",
       "attend"},
      {"a", tr("scoring function, attention score"), tr("How well a query and a key match, as a number of any size."),
       "scoring-a-score-for-every-pair", "AnyScorer"},
      {"α", tr("attention weight"), tr("A score after softmax: not negative, and the weights of a query sum to 1."),
       "cues-weights-as-a-picture", "Attended"},
      {"", tr("masked softmax, valid length"), tr("Softmax over the keys that count; the others get exactly 0."),
       "scoring-masked-softmax", "masked_softmax"},
      {"wᵀ tanh(…)", tr("additive attention"), tr("A score by a small network, for vectors of any lengths."),
       "scoring-a-score-for-every-pair", "Additive"},
      {"qᵀk/√d", tr("scaled dot-product attention"),
       tr("A score by a product, divided so that softmax does not saturate."),
       "scoring-why-divide-by-the-square-root-of-d", "ScaledDot"},
      {"H", tr("head"), tr("One of several attentions side by side, with its own matrices."),
       "multi-head-several-attentions-side-by-side", "MultiHead"},
      {"", tr("self-attention"), tr("Attention whose queries, keys and values come from the same tokens."),
       "self-attention-tokens-that-attend-to-each-other", "MultiHead"},
      {"p", tr("positional encoding"), tr("Vectors or biases that tell where a token is."),
       "self-attention-positions-as-sines-and-cosines", "sinusoidal_positions"},
      {"x + f(x)", tr("residual connection"), tr("The input of a layer added to its output."),
       "transformer-add-and-norm", "TransformerEncoder"},
      {"LN", tr("layer normalisation"), tr("Every token is shifted and scaled to mean 0 and variance 1."),
       "transformer-layer-norm-against-batch-norm", "LayerNorm"},
      {"", tr("teacher forcing"), tr("In training the decoder reads the true tokens, not its own."), "exercise-9.7.4",
       "BookConfig"},
      {"", tr("encoder, decoder"), tr("The part that reads the source, and the part that writes the target."),
       "seq2seq-diagram", "Seq2Seq"},
      {"", tr("beam search"), tr("Search that keeps the best few hypotheses at every step."),
       "bahdanau-greedy-is-not-best-9-8", "search"},
      {"", tr("kernel"), tr("How weight falls with the distance between query and key."),
       "kernel-regression-four-kernels", "Gaussian"},
      {"h", tr("bandwidth, width"), tr("The distance over which one input still speaks about another."),
       "exercise-10.2.3", "rule_bandwidth"},
      {"", tr("patch"), tr("A square of an image, used as a token."), "vision-transformer-an-image-as-a-sequence",
       "patches"},
      {"", tr("class token"), tr("A token added to a sequence to carry the answer."), "exercise-11.8.2",
       "VisionTransformer"},
      {"", tr("pretraining, fine-tuning"), tr("Learning from plain text first, then from labels."),
       "language-models-from-a-language-model-to-a-classifier", "RunFolder"},
      {"BLEU", verbatim("BLEU"), tr("How many runs of words a translation shares with a reference."),
       "bahdanau-four-sentences", "d2l_bleu"},
  };
}

}  // namespace qkv::labs
