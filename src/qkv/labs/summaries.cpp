// What each section says, in a few sentences of our own.
#include <map>

#include "qkv/labs/lab.h"

namespace qkv::labs {

std::vector<Text> summary_of(const std::string& lab) {
  static const std::map<std::string, std::vector<Text>> all = {
      {"cues",
       {tr("Attention is limited, so something must choose. What draws the eye chooses without a question; "
           "a query chooses by what is wanted."),
        tr("A query is compared with keys, the result weighs the values. Without a query only pooling or a "
           "fully connected layer is left."),
        tr("The weights of every query are a distribution over the keys, so they can be drawn and read.")}},
      {"kernel-regression",
       {tr("Kernel regression is attention: the inputs are keys, the outputs values, and a new input is the "
           "query."),
        tr("Its prediction is a weighted mean of known outputs; average pooling is the case of equal "
           "weights."),
        tr("A non-parametric pooling learns nothing and smooths too much; one learned width fits better and "
           "follows the noise more.")}},
      {"scoring",
       {tr("Attention is a mean of values; which mean is decided by the scoring function."),
        tr("Additive attention compares vectors of different lengths. The scaled dot product needs equal "
           "lengths and costs less."),
        tr("A masked key must get exactly nothing; dividing by the square root of the width keeps softmax "
           "from saturating.")}},
      {"bahdanau",
       {tr("Without attention a sentence must fit into one vector. With it, the decoder looks at all states "
           "of the encoder before every word."),
        tr("The query is the decoder's last state; keys and values are the states of the encoder."),
        tr("The weights show which source word is being translated, as gold alignments confirm.")}},
      {"multi-head",
       {tr("Several heads look for different things in the same input, each in its own subspace."),
        tr("All heads are computed in one product by moving an axis; nothing has to loop."),
        tr("Heads are far from equally useful, and the least useful can be removed.")}},
      {"self-attention",
       {tr("In self-attention queries, keys and values come from the same tokens."),
        tr("Any two tokens are one step apart and all are computed at once, but the cost grows with the "
           "square of the length."),
        tr("It does not know the order of its tokens; positions, absolute or relative, have to be added.")}},
      {"transformer",
       {tr("A Transformer is an encoder and a decoder made of attention alone; each of them can also be "
           "used without the other."),
        tr("The decoder's mask keeps it from reading ahead, in training as in use."),
        tr("Residual connections and layer norm make deep stacks trainable; the feed-forward network treats "
           "all positions alike.")}},
      {"long-inputs",
       {tr("Exact attention never has to store its weights; its memory grows with the length, its time with "
           "the square."),
        tr("Cheaper kinds leave pairs out or replace softmax by sums. They are faster and pay on tasks that "
           "need far tokens.")}},
      {"vision-transformer",
       {tr("An image is a sequence of patches for a Transformer."),
        tr("It has to learn what a convolution has built in, that near patches belong together; with little "
           "data that is a handicap.")}},
      {"language-models",
       {tr("One architecture, three objectives: naming hidden words, writing missing spans, naming the next "
           "word."),
        tr("Reading text first makes later tasks learnable from few labels."),
        tr("Loss falls as a power of parameters, data and compute, over the range that was measured.")}},
      {"engine",
       {tr("A tape records what was computed; replayed backwards it gives every gradient."),
        tr("Gradients are checked against finite differences, and the first model learns with them.")}},
  };
  const auto found = all.find(lab);
  return found == all.end() ? std::vector<Text>{} : found->second;
}

}  // namespace qkv::labs
