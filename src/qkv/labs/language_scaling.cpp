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
constexpr std::array<int64_t, 6> kWords = {500, 1000, 2000, 4000, 8000, 16000};
constexpr int64_t kPartWidth = 16;  // of the models that read less text
constexpr int64_t kScalingSteps = 300, kScalingMeasures = 15, kTestWords = 3000;
constexpr size_t kEarly = 3;  // measures at the beginning of a training, which follow no law

// Points of one panel and the law through them.
struct Scaled {
  std::vector<double> x, y;
  PowerLaw law;

  void add(double at, double loss) {
    x.push_back(at);
    y.push_back(loss);
  }
  void fit() { law = fitted_power_law(x, y); }
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
};

struct Scaling {
  std::vector<Reader> sizes, parts;  // by kWidths, on all of the text; by kWords, kPartWidth wide
};

double parameters_of(const Reader& reader) {
  LanguageModel copy = reader.model;
  return static_cast<double>(flatten(copy).count());
}

// Narrow models learn well with higher rates.
float rate_of(int64_t width) { return 0.04f * std::sqrt(8.0f / static_cast<float>(width)); }

Scaling trained_sizes(Page& page) {
  const WordText text = read_words(page.seed());
  Scaling out;
  out.sizes.resize(kWidths.size());
  out.parts.resize(kWords.size());
  Work work(page, tr("training {count} small language models", "count"_a = kWidths.size() + kWords.size()),
            kWidths.size() + kWords.size());
  // The longest training first, so that two cores end at about the same time.
  parallel_for(std::ssize(kWidths) + std::ssize(kWords), 1e10, [&](int64_t task) {
    const SerialScope serial;
    const auto i = static_cast<size_t>(task);
    const bool whole = i < kWidths.size();
    const size_t at = whole ? kWidths.size() - 1 - i : i - kWidths.size();
    const int64_t width = whole ? kWidths[at] : kPartWidth;
    std::vector<int32_t> part = text.train;
    if (!whole) part.resize(static_cast<size_t>(kWords[at]));
    WorkObserver follower(work, i);
    (whole ? out.sizes : out.parts)[at] = trained_reader({.width = width,
                                                          .steps = kScalingSteps,
                                                          .measures = kScalingMeasures,
                                                          .rate = rate_of(width),
                                                          .open_end = true,
                                                          .test_words = kTestWords},
                                                         text, part, page.seed(), follower);
  });
  return out;
}

// The smallest loss that any model reached with no more compute: 6 operations per parameter and word.
Scaled frontier(const std::vector<Reader>& sizes) {
  std::vector<std::pair<double, double>> all;
  for (const Reader& reader : sizes)
    for (size_t i = kEarly; i < reader.loss.size(); ++i)
      all.emplace_back(6 * parameters_of(reader) * reader.tokens[i], reader.loss[i]);
  std::ranges::sort(all);
  Scaled out;
  for (const auto& [compute, loss] : all)
    if (out.y.empty() || loss < out.y.back()) out.add(compute, loss);
  return out;
}

}  // namespace

void scaling(Page& page) {
  page.heading(tr("Parameters, data and compute"));
  page.say(
      tr("How much better is a larger model, more text, or longer training? For large language models the loss falls "
         "as a **power law** in each of the three, as long as the other two are plentiful: a straight line if both "
         "axes are logarithmic (Kaplan et al., 2020). The same at our scale: {count} causal models of two layers, "
         "{narrow} to {wide} wide, read the built-in corpus for {steps} steps; {parts} others, {width} wide, read only "
         "a part of it, as long as the loss on new text falls.",
         "count"_a = kWidths.size(), "narrow"_a = kWidths.front(), "wide"_a = kWidths.back(), "steps"_a = kScalingSteps,
         "parts"_a = kWords.size(), "width"_a = kPartWidth));
  const Scaling trained = trained_sizes(page);
  Scaled size, data, compute = frontier(trained.sizes);
  std::vector<Series> courses;
  for (const Reader& reader : trained.sizes) {
    const double parameters = parameters_of(reader);
    size.add(parameters, reader.loss.back());
    Series course{"", {}, reader.loss, LineStyle{.colour = Colour{170, 170, 170}, .width = 1}};
    for (const double tokens : reader.tokens) course.x.push_back(6 * parameters * tokens);
    courses.push_back(std::move(course));
  }
  for (size_t i = 0; i < kWords.size(); ++i)
    data.add(static_cast<double>(kWords[i]), std::ranges::min(trained.parts[i].loss));
  for (Scaled* s : {&size, &data, &compute}) s->fit();
  page.say(
      tr("A text has a loss that no model can go below: what cannot be known in advance. In this corpus it is "
         "near, so the law that is fitted has a floor $E$, as in Hoffmann et al. (2022):"));
  page.formula("L(x) = E + (x_0 / x)^\\alpha");
  const auto panel = [](std::vector<Series> series, const Text& title, const Text& x) {
    return Panel{Curves{std::move(series)},
                 title,
                 {.label = x, .scale = AxisScale::log},
                 {.label = tr("loss, nats per word"), .scale = AxisScale::log}};
  };
  Figure figure;
  figure.cols = 3;
  figure.share_y = true;
  courses.push_back(compute.points(verbatim("")));
  courses.push_back(compute.line(verbatim("")));
  figure.panels = {panel({size.points(tr("measured")), size.line(tr("fitted"))}, tr("size"), tr("parameters")),
                   panel({data.points(verbatim("")), data.line(verbatim(""))}, tr("data"), tr("words of text")),
                   panel(std::move(courses), tr("compute"), tr("operations"))};
  page.draw("scaling", figure,
            tr("Loss on new text against parameters (the table of words included), words of training text, and "
               "operations of training (6 per parameter and word). Both axes are logarithmic. Grey: the course of each "
               "training; the circles there are the best that any model reached with so much compute."));
  const auto row = [](const Scaled& s, const char* published) -> std::vector<std::string> {
    return {text(rounded(s.factor(), 0), " ×"),
            rounded(s.law.exponent, 2),
            text(rounded(s.law.low, 2), " – ", rounded(s.law.high, 2)),
            rounded(s.law.floor, 2),
            percent(s.law.worst),
            published};
  };
  named_table(page,
              {verbatim(""), tr("range"), tr("exponent"), tr("95 % interval"), tr("floor"), tr("worst deviation"),
               tr("Kaplan et al.")},
              {{tr("parameters"), row(size, "0.076")},
               {tr("words"), row(data, "0.095")},
               {tr("compute"), row(compute, "0.050")}});
  page.claim(size.law.worst < 0.05 && data.law.worst < 0.05 && compute.law.worst < 0.1,
             tr("Loss falls as a power law above a floor, in parameters, data and compute."),
             tr("largest deviation of a point {size}, {data}, {compute}", "size"_a = percent(size.law.worst),
                "data"_a = percent(data.law.worst), "compute"_a = percent(compute.law.worst)));
  page.claim(
      size.law.low > 0.076 && data.law.low > 0.095 && compute.law.low > 0.050,
      tr("The loss falls faster than the published exponents: a grammar of a few hundred words is soon learned."),
      tr("exponents at least {size:.2f}, {data:.2f}, {compute:.2f}; published 0.076, 0.095, 0.050",
         "size"_a = size.law.low, "data"_a = data.law.low, "compute"_a = compute.law.low));
  page.say(
      tr("Kaplan et al. measured their exponents on web text, without a floor and over many more orders of magnitude; "
         "with six points here, the intervals are wide. What carries over is the shape, and what one does with it: fit "
         "small models, and read off what a larger one would gain."));
}

}  // namespace qkv::labs::language
