// What the steps of lab 10.5 share: a task with three questions about every token, and small models trained on it.
#pragma once

#include <string>
#include <vector>

#include "qkv/attention/multi_head.h"
#include "qkv/labs/lab.h"

namespace qkv::labs::multi_head {

/// A line is the letters a to h in random order, each with a random digit. Every token must give three digits: that of
/// the token before it (the first token: its own), of the first token of the line, and of its partner (a and b,
/// c and d, ...).
inline constexpr int64_t kLength = 8, kDigits = 4, kQuestions = 3, kHeads = 6, kHeadWidth = 16;

struct Lines {
  Ids letters, digits;  // (B, 8)
  Ids answers;          // (B, 8, 3)
  int64_t rows() const { return letters.size(0); }
};
Lines draw_lines(int64_t rows, const Rng& rng);
/// The tokens of a line, such as "c3".
std::vector<std::string> tokens_of(const Lines& lines, int64_t row);

/// Embeddings with positions, one layer of multi-head self-attention, and a linear layer that answers. There is no
/// residual connection, so an answer knows only what came through the heads.
struct Reader {
  Tensor letters, digits;  // (8, width), (4, width)
  MultiHead self;
  Linear answer;  // width -> 3 x 4

  Reader() = default;
  Reader(int64_t width, int64_t heads, const Rng& rng);
  Attended attended(const Lines& lines) const;
  /// The outputs of the heads (B, 8, H, D), multiplied by their gates (B, 1, H, 1) if there are any -> logits
  /// (B, 8, 3, 4).
  Tensor logits(const Tensor& found, const Tensor& gates) const;
  Tensor logits(const Lines& lines) const { return logits(attended(lines).output, {}); }
  void visit(auto&& f) {
    f("letters", letters);
    f("digits", digits);
    f("self", self);
    f("answer", answer);
  }
};

struct Score {
  double loss = 0;                        // nats per answer
  std::vector<double> right = {0, 0, 0};  // share, by question
  double all() const { return (right[0] + right[1] + right[2]) / 3; }
};
/// Scores the outputs of the heads on the lines, with gates (1, 1, H, 1) or none. Gates act after the attention, which
/// need not run again.
Score score(const Reader& reader, const Tensor& found, const Lines& lines, const Tensor& gates = {});
inline Score score(const Reader& reader, const Lines& lines) {
  return score(reader, reader.attended(lines).output, lines);
}

/// A model before and after training, and its losses.
struct TrainedReader {
  Reader before, after;
  std::vector<double> losses = {};  // by step
  /// Mean loss of the last twenty steps, which decides the best of several starts.
  double end() const;
};

/// Models of each kind from several starts, the best first. `one` has a single head of the same total width.
inline constexpr int64_t kStarts = 3, kOneHeadStarts = 2;
struct Readers {
  std::vector<TrainedReader> several, one;
};
/// Trained on first use.
const Readers& readers(Page& page);
/// Lines that were not used in training.
Lines test_lines(const Page& page);

// multi_head.cpp: the definition, its shapes, how the heads share one product, parameters.
void definition(Page& page);
void shapes(Page& page);
void blocks(Page& page);
void loop(Page& page);
void sizes(Page& page);
void grouped_heads(Page& page);
// multi_head_task.cpp: why one head is not enough.
void one_against_several(Page& page);
// multi_head_exercises.cpp
void drawn(Page& page);
void distances(Page& page);
void importance(Page& page);
void pruning(Page& page);

}  // namespace qkv::labs::multi_head
