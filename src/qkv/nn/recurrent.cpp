// Recurrent layers: how they are initialised and stacked.
#include "qkv/nn/recurrent.h"

#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/shape.h"

namespace qkv {
namespace {

constexpr int64_t kMostLayers = Few<CellState>::kMost;

RecurrentLayer random_layer(int64_t inputs, int64_t units, const RecurrentOptions& o, const Rng& rng) {
  const int64_t rows = cell_gates(o.cell) * units;
  const auto weight = [&](int64_t columns, const char* name) {
    return parameter(o.init == RecurrentOptions::Init::xavier ? xavier_uniform({rows, columns}, rng.at(name))
                                                              : fan_in_uniform({rows, columns}, units, rng.at(name)));
  };
  const auto bias = [&](const char* name) { return parameter(fan_in_uniform({rows}, units, rng.at(name))); };
  return {weight(inputs, "weight_ih"), weight(units, "weight_hh"), bias("bias_ih"), bias("bias_hh")};
}

}  // namespace

Recurrent::Recurrent(int64_t inputs, int64_t units, const RecurrentOptions& o, const Rng& rng) : options(o) {
  check(inputs > 0 && units > 0, "[recurrent] expected at least one input and unit, got ", inputs, " and ", units);
  check(o.layers > 0 && o.layers <= kMostLayers, "[recurrent] expected 1 to ", kMostLayers, " layers, got ", o.layers);
  for (int64_t l = 0; l < o.layers; ++l) {
    const uint64_t at = static_cast<uint64_t>(l);
    const int64_t in = l == 0 ? inputs : o.bidirectional ? 2 * units : units;
    layers.push_back(random_layer(in, units, o, rng.at("layers").at(at)));
    if (o.bidirectional) reverse.push_back(random_layer(in, units, o, rng.at("reverse").at(at)));
  }
}

Recurrent::Output Recurrent::operator()(const Tensor& x, const Run& run, const Ids& lens, const Few<CellState>& first,
                                        const Few<CellState>& reverse_first) const {
  check(!layers.empty(), "[recurrent] there are no layers: make it with its sizes");
  check(first.empty() || first.size() == layers.size(), "[recurrent] ", first.size(), " first states for ",
        layers.size(), " layers");
  check(reverse_first.empty() || reverse_first.size() == reverse.size(), "[recurrent] ", reverse_first.size(),
        " first states for ", reverse.size(), " reverse layers");
  Output out;
  out.y = x;
  for (size_t l = 0; l < layers.size(); ++l) {
    const Tensor in = l == 0 ? x : dropout(out.y, options.dropout, run.at("dropout").at(l));
    RecurrentResult forward =
        recurrent(options.cell, in, layers[l].weights(), first.empty() ? CellState{} : first[l], lens);
    out.state.push_back(forward.state);
    out.y = forward.y;
    if (reverse.empty()) continue;
    RecurrentResult backward =
        recurrent(options.cell, in, reverse[l].weights(), reverse_first.empty() ? CellState{} : reverse_first[l], lens,
                  Direction::backward);
    out.reverse_state.push_back(backward.state);
    out.y = concat({forward.y, backward.y}, -1);
  }
  return out;
}

}  // namespace qkv
