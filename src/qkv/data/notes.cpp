// The data sets of the notes.
#include "qkv/data/notes.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"

namespace qkv {

NotesOptions NotesOptions::of(Edition edition) {
  return edition == Edition::zh ? NotesOptions{} : NotesOptions{.edition = Edition::en, .points = 40, .noise = 1};
}

double notes_curve(Edition edition, double x) {
  return 2 * std::sin(x) + (edition == Edition::zh ? std::pow(x, 0.8) : x);
}

Rng notes_rng(uint64_t seed, Edition edition) {
  return Rng(seed).at("kernel-regression").at(edition == Edition::zh ? "zh" : "en");
}

Table nadaraya_watson_data(const Rng& rng, const NotesOptions& options) {
  check(options.points >= 1, "[data] the number of points must be at least 1, got ", options.points);
  check(options.noise >= 0 && std::isfinite(options.noise), "[data] the noise must be a standard deviation, got ",
        options.noise);
  std::vector<double> x(static_cast<size_t>(options.points)), y(x.size());
  const Rng places = rng.at("x"), noise = rng.at("noise");
  for (size_t i = 0; i < x.size(); ++i) x[i] = 5.0 * places.uniform(i);
  std::sort(x.begin(), x.end());
  for (size_t i = 0; i < x.size(); ++i) y[i] = notes_curve(options.edition, x[i]) + options.noise * noise.normal(i);
  return {{"x", "y"}, {std::move(x), std::move(y)}};
}

Table waist_data() { return {{"waist", "weight"}, {{51, 56, 58}, {40, 43, 48}}}; }

Table measures_data() {
  // The third person has the same waist and chest as the second, as in the notes: equal keys share the weight.
  return {{"waist", "chest", "weight", "height"}, {{51, 56, 56}, {70, 82, 82}, {40, 43, 48}, {155, 159, 162}}};
}

}  // namespace qkv
