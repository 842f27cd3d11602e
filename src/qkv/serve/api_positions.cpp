// POST /positions: encodings of places as maps, clock hands and dot products, and what a shuffle does to attention.
#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/attention_positions.h"
#include "qkv/attention/scorers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/rotary.h"
#include "qkv/serve/call.h"

namespace qkv::serve {
namespace {

// Random vectors stand for tokens; the same ones for every kind.
Tensor token_vectors(int64_t length, int64_t width) { return uniform({length, width}, Rng(1).at("tokens")); }

Tensor rows(const Tensor& x, const std::vector<int64_t>& order) {
  Tensor out = Tensor::empty(x.shape());
  const int64_t width = x.size(1);
  for (size_t i = 0; i < order.size(); ++i)
    std::copy_n(x.ptr() + order[i] * width, width, out.mutable_ptr() + static_cast<int64_t>(i) * width);
  return out;
}

std::vector<int64_t> read_order(const Fields& in, int64_t length) {
  std::vector<int64_t> order;
  if (!in.has("order")) {
    for (int64_t i = length; i-- > 0;) order.push_back(i);
    return order;
  }
  std::vector<bool> used(static_cast<size_t>(length), false);
  for (const double v : in.numbers("order", static_cast<size_t>(length))) {
    const bool fits = v >= 0 && v < static_cast<double>(length) && v == std::floor(v) && !used[static_cast<size_t>(v)];
    require(fits, "order: expected each of 0 to {last} once, got {value}", "last"_a = length - 1, "value"_a = v);
    used[static_cast<size_t>(v)] = true;
    order.push_back(static_cast<int64_t>(v));
  }
  require(std::ssize(order) == length, "order: expected {length} numbers, got {count}", "length"_a = length,
          "count"_a = order.size());
  return order;
}

// Self-attention of one head over these tokens, with their places.
Tensor attended(const Tensor& tokens, PositionKind kind, const AddedPositions& added,
                const AttentionPositions& inside) {
  const int64_t n = tokens.size(0), width = tokens.size(1);
  const Tensor places = added(n, 0);
  const Tensor x = places.defined() ? add(tokens, places) : tokens;
  Tensor q = x.viewed({1, n, 1, width});
  if (kind == PositionKind::rotary) q = inside.placed(q, 0);
  const Tensor q4 = q.viewed({1, 1, n, width});
  return attend(ScaledDot{}, q4, q4, x.viewed({1, 1, n, width}), inside.onto(Mask::none(), n, n, 0))
      .output.viewed({n, width});
}

}  // namespace

Json positions(const Call& call) {
  const Fields in = call.fields();
  const PositionKind kind = in.choice("kind", PositionKind::sinusoidal);
  const int64_t length = in.whole("length", 1, 256, 32), width = in.whole("width", 2, 256, 32),
                offset = in.whole("offset", 0, 1'000'000, 0);
  require(width % 2 == 0, "width: must be even, got {width}", "width"_a = width);
  const Rng rng(1);
  const AddedPositions added(kind, length, width, rng.at("table"));
  const AttentionPositions inside(kind, 1, width, std::max<int64_t>(1, length / 2), {});

  // The encoding itself: what is added, how a pair of ones is turned, or the bias of every distance.
  Tensor map = zeros({length, width});
  if (kind == PositionKind::sinusoidal) map = sinusoidal_positions(length, width, offset);
  if (kind == PositionKind::learned) map = added(length, 0);
  if (kind == PositionKind::rotary)
    map = rotate(ones({1, 1, length, width}), HeadAxis::outer, offset).viewed({length, width});
  if (kind == PositionKind::alibi || kind == PositionKind::relative) {
    const Tensor bias =
        kind == PositionKind::alibi ? Alibi{1}(length, length) : RelativeBias(1, length)(length, length);
    map = Tensor::empty({length, length});
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j) map.mutable_ptr()[i * length + j] = bias.ptr()[j - i + length - 1];
  }
  Json out = {{"kind", name_of(kind)}, {"map", nested(map)}};

  Json hands = Json::array();
  const bool turns = kind == PositionKind::sinusoidal || kind == PositionKind::rotary;
  for (int64_t pair = 0; turns && pair < width / 2; ++pair) {
    // position_shift turns the pair of position 0 into that of `offset`: sine and cosine of the angle.
    const Tensor shift = position_shift(offset, pair, width);
    const double speed = std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
    hands.push_back({{"pair", pair},
                     {"speed", speed},
                     {"angle", std::fmod(static_cast<double>(offset) * speed, 2 * M_PI)},
                     {"turned", nested(shift)}});
  }
  out["hands"] = hands;

  Json dot = Json::array();
  for (int64_t d = 0; d < length; ++d) {
    double value = 0;
    const bool square = kind == PositionKind::alibi || kind == PositionKind::relative;
    if (square) {
      value = static_cast<double>(map.ptr()[d]);
    } else {
      for (int64_t c = 0; c < width; ++c)
        value += static_cast<double>(map.ptr()[c]) * static_cast<double>(map.ptr()[d * width + c]);
    }
    dot.push_back({{"distance", d}, {"value", value}});
  }
  out["dot"] = dot;

  const std::vector<int64_t> order = read_order(in, length);
  const Tensor tokens = token_vectors(length, width);
  const Tensor plain = attended(tokens, kind, added, inside);
  const Tensor shuffled = attended(rows(tokens, order), kind, added, inside);
  const Tensor expected = rows(plain, order);
  double largest = 0;
  for (int64_t i = 0; i < plain.numel(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(expected.ptr()[i]) - shuffled.ptr()[i]));
  out["outputs"] = {{"plain", nested(plain)},
                    {"shuffled", nested(shuffled)},
                    {"order", order},
                    {"permuted", largest < 1e-5},
                    {"largest", largest}};
  out["command"] = ask_line(call, "positions");
  return out;
}

}  // namespace qkv::serve
