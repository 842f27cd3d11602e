// Draws by distances to line segments: everything is a polygon, a stroke along one, or a pattern inside a disc.
#include "qkv/data/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "qkv/core/parallel.h"

namespace qkv {
namespace {

enum class Drawing { ring, square, triangle, star, cross, wave, spiral, stripes, checks, dots };
constexpr std::array<const char*, 10> kClasses = {"ring", "square", "triangle", "star",   "cross",
                                                  "wave", "spiral", "stripes",  "checks", "dots"};
constexpr double kTurn = 2 * std::numbers::pi;

struct Point {
  double x = 0, y = 0;
};

/// Random numbers of one picture, in the order in which they are asked for.
class Draws {
 public:
  explicit Draws(const Rng& rng) : rng_(rng) {}
  double between(double low, double high) { return low + (high - low) * double{rng_.uniform(next_++)}; }
  bool chance(double share) { return between(0, 1) < share; }
  int whole(int low, int high) {
    return low + static_cast<int>(rng_.below(static_cast<uint64_t>(high - low + 1), next_++));
  }

 private:
  Rng rng_;
  uint64_t next_ = 0;
};

using Line = std::vector<Point>;  // joined by segments

Point on_circle(double turn, double radius) {
  return {radius * std::cos(kTurn * turn), radius * std::sin(kTurn * turn)};
}

// Corners on circles of the given radii in turn, closed.
Line polygon(int corners, double outer, double inner) {
  Line out;
  for (int i = 0; i <= corners; ++i)
    out.push_back(on_circle(static_cast<double>(i) / corners, i % 2 == 0 ? outer : inner));
  return out;
}

// The lines of a drawing that is about 2 wide.
std::vector<Line> lines_of(Drawing drawing, Draws& draws) {
  constexpr int kSteps = 28;
  Line line;
  switch (drawing) {
    case Drawing::ring: {
      const double squeezed = draws.between(0.72, 1);
      for (int i = 0; i <= kSteps; ++i) {
        const Point p = on_circle(static_cast<double>(i) / kSteps, 1);
        line.push_back({p.x, p.y * squeezed});
      }
      return {line};
    }
    case Drawing::square: {
      const double high = draws.between(0.6, 1);
      return {{{-0.85, -0.85 * high},
               {0.85, -0.85 * high},
               {0.85, 0.85 * high},
               {-0.85, 0.85 * high},
               {-0.85, -0.85 * high}}};
    }
    case Drawing::triangle: {
      Line corners = polygon(3, 1, 1);
      const double pulled = draws.between(0.75, 1.15);
      corners.front().x = corners.back().x = pulled;
      return {corners};
    }
    case Drawing::star: {
      const double inner = draws.between(0.35, 0.5);
      return {polygon(2 * draws.whole(4, 6), 1.05, inner)};
    }
    case Drawing::cross: {
      const double bent = draws.between(-0.12, 0.12), at = draws.between(-0.2, 0.2);
      return {{{-1, at}, {1, at + bent}}, {{at, -1}, {at - bent, 1}}};
    }
    case Drawing::wave: {
      const double height = draws.between(0.25, 0.5), waves = draws.between(1.2, 2.2), start = draws.between(0, 1);
      for (int i = 0; i <= kSteps; ++i) {
        const double x = 2.0 * i / kSteps - 1;
        line.push_back({1.1 * x, height * std::sin(kTurn * (waves * x / 2 + start))});
      }
      return {line};
    }
    case Drawing::spiral: {
      const double turns = draws.between(1.6, 2.3), hand = draws.chance(0.5) ? 1 : -1;
      for (int i = 0; i <= 2 * kSteps; ++i) {
        const double share = i / (2.0 * kSteps);
        line.push_back(on_circle(hand * turns * share, 0.08 + 0.95 * share));
      }
      return {line};
    }
    default:
      return {};
  }
}

double distance(const Point& p, const Point& a, const Point& b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double share = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - share * dx, p.y - a.y - share * dy);
}

double distance(const Point& p, const std::vector<Line>& lines) {
  double least = 1e9;
  for (const Line& line : lines)
    for (size_t i = 0; i + 1 < line.size(); ++i) least = std::min(least, distance(p, line[i], line[i + 1]));
  return least;
}

// Whether a closed line goes around the point: an odd number of its segments cross a ray from there.
bool inside(const Point& p, const Line& line) {
  bool odd = false;
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    const Point &a = line[i], &b = line[i + 1];
    if ((a.y > p.y) != (b.y > p.y) && p.x < a.x + (p.y - a.y) / (b.y - a.y) * (b.x - a.x)) odd = !odd;
  }
  return odd;
}

// A drawing at a place: how much of a pixel it covers.
class Placed {
 public:
  Placed(Drawing drawing, double side, Draws& draws) : drawing_(drawing) {
    radius_ = side * draws.between(0.22, 0.4);
    const double room = side / 2 - 0.75 * radius_;
    centre_ = {side / 2 + draws.between(-1, 1) * room * 0.75, side / 2 + draws.between(-1, 1) * room * 0.75};
    const double turn = kTurn * draws.between(0, 1);
    cos_ = std::cos(turn);
    sin_ = std::sin(turn);
    thick_ = side / 28 * draws.between(0.55, 1.25);
    lines_ = lines_of(drawing, draws);
    const bool may_fill = drawing == Drawing::square || drawing == Drawing::triangle || drawing == Drawing::star;
    filled_ = may_fill && draws.chance(0.35);
    period_ = std::max(draws.between(0.42, 0.62), 3.2 / radius_);  // of a texture
    phase_ = {draws.between(0, 1), draws.between(0, 1)};
    share_ = draws.between(0.4, 0.6);
  }

  double covers(double x, double y) const {
    const double dx = (x - centre_.x) / radius_, dy = (y - centre_.y) / radius_;
    const Point p{cos_ * dx + sin_ * dy, cos_ * dy - sin_ * dx};
    if (lines_.empty()) return textured(p);
    const double away = radius_ * distance(p, lines_);  // in pixels
    if (filled_ && inside(p, lines_[0])) return 1;
    return std::clamp(thick_ - away + 0.5, 0.0, 1.0);
  }

 private:
  double textured(const Point& p) const {
    const double edge = std::clamp(radius_ * (1.05 - std::hypot(p.x, p.y)) + 0.5, 0.0, 1.0);
    if (edge == 0) return 0;
    const double u = p.x / period_ + phase_.x, v = p.y / period_ + phase_.y, pixels = period_ * radius_;
    // How far inside the bright half of a period, in pixels.
    const auto in_half = [&](double t) { return (share_ / 2 - std::abs(t - std::floor(t) - 0.5)) * pixels; };
    const auto soft = [](double d) { return std::clamp(d + 0.5, 0.0, 1.0); };
    switch (drawing_) {
      case Drawing::stripes:
        return edge * soft(in_half(u));
      case Drawing::checks: {
        const double a = soft(in_half(u)), b = soft(in_half(v));
        return edge * (a * b + (1 - a) * (1 - b));
      }
      default: {
        const double fu = u - std::floor(u) - 0.5, fv = v - std::floor(v) - 0.5;
        return edge * soft((0.66 * share_ - std::hypot(fu, fv)) * pixels);
      }
    }
  }

  Drawing drawing_;
  double radius_ = 1, cos_ = 1, sin_ = 0, thick_ = 1, period_ = 1, share_ = 0.5;
  bool filled_ = false;
  Point centre_, phase_;
  std::vector<Line> lines_;
};

// A straight line across the picture that belongs to nothing.
struct Scratch {
  bool drawn = false;
  Line line;
  double thick = 1, light = 0;
};

Scratch scratch_of(double side, Draws& draws) {
  Scratch out;
  out.drawn = draws.chance(0.4);
  const double turn = draws.between(0, 1), off = draws.between(-0.35, 0.35) * side;
  const Point along = on_circle(turn, side), across = on_circle(turn + 0.25, off);
  const Point middle{side / 2 + across.x, side / 2 + across.y};
  const double from = draws.between(0.15, 0.75), to = draws.between(0.15, 0.75);
  out.line = {{middle.x - from * along.x, middle.y - from * along.y},
              {middle.x + to * along.x, middle.y + to * along.y}};
  out.thick = side / 28 * draws.between(0.3, 0.7);
  out.light = draws.between(0.35, 0.8);
  return out;
}

void draw(Drawing drawing, int64_t pixels, const Rng& rng, uint8_t* out) {
  Draws draws(rng.at("shape"));
  const auto side = static_cast<double>(pixels);
  const Placed placed(drawing, side, draws);
  const Scratch scratch = scratch_of(side, draws);
  const double light = draws.between(0.55, 1), ground = draws.between(0, 0.22), noise = draws.between(0.02, 0.09);
  const Point slope{draws.between(-0.12, 0.12), draws.between(-0.12, 0.12)};
  const Rng grain = rng.at("noise");
  for (int64_t i = 0; i < pixels * pixels; ++i) {
    const double x = static_cast<double>(i % pixels) + 0.5, y = static_cast<double>(i / pixels) + 0.5;
    double value = ground + slope.x * (x / side - 0.5) + slope.y * (y / side - 0.5);
    if (scratch.drawn) {
      const double covered = std::clamp(scratch.thick - distance({x, y}, {scratch.line}) + 0.5, 0.0, 1.0);
      value += covered * (scratch.light - value);
    }
    value += placed.covers(x, y) * (light - value);
    value += noise * double{grain.normal(static_cast<uint64_t>(i))};
    out[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  }
}

}  // namespace

ImageSet drawn_pictures(const PicturesOptions& options) {
  check(options.count >= 1 && options.side >= 8,
        "[drawn_pictures] expected 1 or more pictures of 8 or more pixels, got ", options.count, " of ", options.side);
  ImageSet out{{1, options.side, options.side}, {}, {}, {kClasses.begin(), kClasses.end()}};
  out.pixels.resize(static_cast<size_t>(options.count * out.size.bytes()));
  out.labels.resize(static_cast<size_t>(options.count));
  const Rng rng = Rng(options.seed).at(options.part == PicturePart::train ? "pictures" : "pictures.valid");
  const auto classes = static_cast<int64_t>(kClasses.size());
  parallel_for(options.count, 2e5 * static_cast<double>(options.count), [&](int64_t i) {
    out.labels[static_cast<size_t>(i)] = static_cast<int32_t>(i % classes);
    draw(static_cast<Drawing>(i % classes), options.side, rng.at(static_cast<uint64_t>(i)),
         out.pixels.data() + i * out.size.bytes());
  });
  return out;
}

}  // namespace qkv
