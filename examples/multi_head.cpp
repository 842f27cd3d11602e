// Multi-head attention of a sentence to itself, and the weights of one of its heads as a heat map.
#include <qkv/qkv.h>

#include <cstdio>

int main() {
  using namespace qkv;
  const std::vector<std::string> words = {"the", "cat", "sat", "down", "."};
  const Tensor x = Embedding(5, 16, Rng(1))(Ids({1, 5}, {0, 1, 2, 3, 4}));  // (1, 5, 16): one sentence of five words
  const MultiHead attention({.width = 16, .heads = 4}, Rng(2));
  const Tensor y = attention(x, x, x, Mask::causal(), Run{});  // no word sees a later one
  std::printf("%s -> %s\n", x.shape().str().c_str(), y.shape().str().c_str());

  const AttentionWeights seen = attention_of(attention, x, x, x, Mask::causal());
  const Tensor head = seen.at("").head(0, 2);  // sentence 0, head 2: (5, 5)
  const Figure figure =
      heatmaps(head, "keys", "queries", {}, {.colours = {.low = 0, .high = 1}, .x_tokens = words, .y_tokens = words});
  std::fputs(terminal(figure, {.columns = 60, .colour = TerminalColour::ascii}).c_str(), stdout);
}
