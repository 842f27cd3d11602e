// A heat map of attention weights with tokens on both axes: printed here; the same Figure can be saved as .svg or .png.
#include <cstdio>

#include "qkv/plot/figure.h"
#include "qkv/plot/terminal.h"

int main() {
  using namespace qkv;
  const Tensor weights({3, 4}, {0.90f, 0.06f, 0.02f, 0.02f,    // je
                                0.15f, 0.75f, 0.05f, 0.05f,    // dors
                                0.02f, 0.03f, 0.45f, 0.50f});  // .
  const Figure figure = heatmaps(
      weights, "source", "translation", {},
      {.colours = {.low = 0, .high = 1}, .x_tokens = {"I", "sleep", ".", "<eos>"}, .y_tokens = {"je", "dors", "."}});
  std::fputs(terminal(figure, {.columns = 60, .colour = TerminalColour::ascii}).c_str(), stdout);
}
