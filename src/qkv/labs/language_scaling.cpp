// Lab 11.9: how the loss falls with parameters, data and compute, and the power laws fitted to it.
#include <algorithm>
#include <array>

#include "qkv/core/parallel.h"
#include "qkv/labs/language.h"
#include "qkv/labs/power_law.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/nn/module.h"

namespace qkv::labs::language {
namespace {

constexpr std::array<int64_t, 6> kWidths = {4, 8, 12, 16, 24, 32};
constexpr std::array<int64_t, 6> kWords = {2000, 4000, 8000, 16000, 32000, 64000};
constexpr size_t kDraws = 2;        // parts of the text of every length
constexpr int64_t kPartWidth = 16;  // of the models that read less text
constexpr int64_t kScalingSteps = 300, kScalingMeasures = 15, kTestWords = 3000;
constexpr int64_t kPartMeasured = 10;                                // steps between measures of a part
constexpr std::array<double, 3> kPublished = {0.076, 0.095, 0.050};  // Kaplan et al.: parameters, data, compute
constexpr size_t kEarly = 3;  // measures at the beginning of a training, which follow no law

// Points of one panel and the law through them.
struct Scaled {
  std::vector<double> x, y;
  PowerLaw law;
  double straight = 0;  // the exponent without a floor: the slope of a straight line through the logarithms

  void add(double at, double loss) {
    x.push_back(at);
    y.push_back(loss);
  }
  void fit() {
    law = fitted_power_law(x, y);
    const auto n = static_cast<double>(x.size());
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double a = std::log(x[i]), b = std::log(y[i]);
      sx += a;
      sy += b;
      sxx += a * a;
      sxy += a * b;
    }
    straight = -(n * sxy - sx * sy) / (n * sxx - sx * sx);
  }
  double factor() const { return x.back() / x.front(); }
  Series points(const Text& name) const { return {name, x, y, line_style("bo")}; }
  Series line(const Text& name) const {
    Series out{name, {}, {}, line_style("r-")};
    for (int i = 0; i <= 40; ++i) {
      out.x.push_back(x.front() * std::pow(factor(), i / 40.0));
      out.y.push_back(law.at(out.x.back()));
    }
    return out;
  }
  // A line with a published exponent, from the beginning of the fitted one.
  Series published(const Text& name, double exponent) const {
    Series out{name, {x.front(), x.back()}, {law.at(x.front())}, line_style("k:")};
    out.y.push_back(out.y.front() * std::pow(factor(), -exponent));
    return out;
  }
};

struct Scaling {
  std::vector<Reader> sizes, parts;  // by kWidths, on all of the text; kDraws for each of kWords, kPartWidth wide
};

double parameters_of(const Reader& reader) {
  LanguageModel copy = reader.model;
  return static_cast<double>(flatten(copy).count());
}

// Narrow models learn well with higher rates.
float rate_of(int64_t width) { return 0.04f * std::sqrt(8.0f / static_cast<float>(width)); }

// A small part is soon learned by heart.
int64_t steps_for(int64_t words) { return std::min(kScalingSteps, 60 + words / 25 / kPartMeasured * kPartMeasured); }

Scaling trained_sizes(Page& page) {
  const WordText text = read_words(page.seed());
  Scaling out;
  out.sizes.resize(kWidths.size());
  out.parts.resize(kWords.size() * kDraws);
  const size_t tasks = out.sizes.size() + out.parts.size();
  Work work(page, tr("training {count} small language models", "count"_a = tasks), tasks);
  // The longest training first, so that two cores end at about the same time.
  parallel_for(static_cast<int64_t>(tasks), 1e10, [&](int64_t task) {
    const SerialScope serial;
    const auto i = static_cast<size_t>(task);
    WorkObserver follower(work, i);
    if (i < kWidths.size()) {
      const size_t at = kWidths.size() - 1 - i;
      out.sizes[at] = trained_reader({.width = kWidths[at],
                                      .steps = kScalingSteps,
                                      .measures = kScalingMeasures,
                                      .rate = rate_of(kWidths[at]),
                                      .open_end = true,
                                      .test_words = kTestWords},
                                     text, text.train, page.seed(), follower);
      return;
    }
    const size_t at = tasks - 1 - i, draw = at % kDraws;
    const int64_t words = kWords[at / kDraws], steps = steps_for(words);
    const auto begin = text.train.begin() + static_cast<int64_t>(draw * (text.train.size() / kDraws));
    out.parts[at] = trained_reader({.width = kPartWidth,
                                    .steps = steps,
                                    .measures = steps / kPartMeasured,
                                    .rate = rate_of(kPartWidth),
                                    .open_end = true,
                                    .test_words = kTestWords},
                                   text, {begin, begin + words}, page.seed(), follower);
  });
  return out;
}

// The lower edge of all trainings, where both axes are logarithmic: 6 operations per parameter and word. Between two
// sizes a third would have been better, so points above a straight line between two others are not on the edge.
Scaled frontier(const std::vector<Reader>& sizes) {
  std::vector<std::pair<double, double>> all;
  for (const Reader& reader : sizes)
    for (size_t i = kEarly; i < reader.loss.size(); ++i)
      all.emplace_back(std::log(6 * parameters_of(reader) * reader.tokens[i]), std::log(reader.loss[i]));
  std::ranges::sort(all);
  std::vector<std::pair<double, double>> edge;
  const auto above = [&](const auto& next) {  // whether the last point is above the line from the one before to `next`
    const auto& [x0, y0] = edge[edge.size() - 2];
    const auto& [x1, y1] = edge.back();
    return (y1 - y0) * (next.first - x0) >= (next.second - y0) * (x1 - x0);
  };
  for (const auto& point : all) {
    if (!edge.empty() && point.second >= edge.back().second) continue;
    while (edge.size() >= 2 && above(point)) edge.pop_back();
    edge.push_back(point);
  }
  Scaled out;
  for (const auto& [compute, loss] : edge) out.add(std::exp(compute), std::exp(loss));
  return out;
}

// The three panels, with the course of every training in the third.
Figure figure_of(const Scaling& trained, const Scaled& size, const Scaled& data, const Scaled& compute) {
  const auto panel = [](std::vector<Series> series, const Text& title, const Text& x) {
    return Panel{Curves{std::move(series)},
                 title,
                 {.label = x, .scale = AxisScale::log},
                 {.label = tr("loss, nats per word"), .scale = AxisScale::log}};
  };
  std::vector<Series> courses;
  for (const Reader& reader : trained.sizes) {
    Series course{"", {}, reader.loss, LineStyle{.colour = Colour{170, 170, 170}, .width = 1}};
    for (const double tokens : reader.tokens) course.x.push_back(6 * parameters_of(reader) * tokens);
    courses.push_back(std::move(course));
  }
  Figure figure;
  figure.cols = 3;
  figure.share_y = true;
  courses.push_back(compute.points(verbatim("")));
  courses.push_back(compute.line(verbatim("")));
  courses.push_back(compute.published(verbatim(""), kPublished[2]));
  figure.panels = {
      panel(
          {size.points(tr("measured")), size.line(tr("fitted")), size.published(tr("published slope"), kPublished[0])},
          tr("size"), tr("parameters")),
      panel({data.points(verbatim("")), data.line(verbatim("")), data.published(verbatim(""), kPublished[1])},
            tr("data"), tr("words of text")),
      panel(std::move(courses), tr("compute"), tr("operations"))};
  return figure;
}

}  // namespace

void scaling(Page& page) {
  page.heading(tr("Parameters, data and compute"));
  page.say(
      tr("How much better is a larger model, more text, or longer training? For large language models the loss falls "
         "as a **power law** in each of the three, as long as the other two are plentiful: a straight line if both "
         "axes are logarithmic (Kaplan et al., 2020). The same at our scale: {count} causal models of two layers, "
         "{narrow} to {wide} wide, read the built-in corpus for {steps} steps; {parts} others, {width} wide, read only "
         "a part of it, two parts of each length, as long as the loss on new text falls.",
         "count"_a = kWidths.size(), "narrow"_a = kWidths.front(), "wide"_a = kWidths.back(), "steps"_a = kScalingSteps,
         "parts"_a = kWords.size() * kDraws, "width"_a = kPartWidth));
  const Scaling trained = trained_sizes(page);
  Scaled size, data, compute = frontier(trained.sizes);
  for (const Reader& reader : trained.sizes) size.add(parameters_of(reader), reader.loss.back());
  for (size_t i = 0; i < kWords.size(); ++i) {
    double sum = 0;
    for (size_t draw = 0; draw < kDraws; ++draw) sum += std::ranges::min(trained.parts[i * kDraws + draw].loss);
    data.add(static_cast<double>(kWords[i]), sum / kDraws);
  }
  for (Scaled* s : {&size, &data, &compute}) s->fit();
  page.say(
      tr("A text has a loss that no model can go below: what cannot be known in advance. In this corpus it is "
         "near, so the law that is fitted has a floor $E$, as in Hoffmann et al. (2022):"));
  page.formula("L(x) = E + (x_0 / x)^\\alpha");
  page.draw(
      "scaling", figure_of(trained, size, data, compute),
      tr("Loss on new text against parameters (the table of words included), words of training text, and "
         "operations of training (6 per parameter and word). Both axes are logarithmic. Grey: the course of each "
         "training; the circles there are the lower edge of all courses. Dotted: the published slopes, from the same "
         "beginning."));
  const auto row = [](const Scaled& s, double published) -> std::vector<std::string> {
    return {text(rounded(s.factor(), 0), " ×"),
            rounded(s.law.exponent, 2),
            text(rounded(s.law.low, 2), " – ", rounded(s.law.high, 2)),
            rounded(s.law.floor, 2),
            percent(s.law.worst),
            rounded(s.straight, 2),
            rounded(published, 3)};
  };
  named_table(page,
              {verbatim(""), tr("range"), tr("exponent"), tr("95 % interval"), tr("floor"), tr("worst deviation"),
               tr("without a floor"), tr("Kaplan et al.")},
              {{tr("parameters"), row(size, kPublished[0])},
               {tr("words"), row(data, kPublished[1])},
               {tr("compute"), row(compute, kPublished[2])}});
  page.claim(size.law.worst < 0.05 && data.law.worst < 0.05 && compute.law.worst < 0.05,
             tr("Loss falls as a power law above a floor, in parameters, data and compute."),
             tr("largest deviation of a point {size}, {data}, {compute}", "size"_a = percent(size.law.worst),
                "data"_a = percent(data.law.worst), "compute"_a = percent(compute.law.worst)));
  page.claim(
      size.straight > kPublished[0] && data.straight > kPublished[1] && compute.straight > kPublished[2],
      tr("Over these ranges the loss falls faster than with the published exponents, even without a floor, as these "
         "were measured: a grammar of a few hundred words is soon learned."),
      tr("exponents without a floor {size:.3f}, {data:.3f}, {compute:.3f}; published 0.076, 0.095, 0.050",
         "size"_a = size.straight, "data"_a = data.straight, "compute"_a = compute.straight));
  page.say(tr(
      "Kaplan et al. measured on web text and over many more orders of magnitude; with six points here, the intervals "
      "are wide. What carries over is the shape, and what one does with it: fit small models, and read off what a "
      "larger one would gain."));
}

}  // namespace qkv::labs::language
