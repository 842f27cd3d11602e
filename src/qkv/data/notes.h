// The small data sets of the attention chapter's notes, as tables.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/rng.h"
#include "qkv/data/edition.h"
#include "qkv/io/csv.h"

namespace QKV_API qkv {

/// zh: 2 sin x + x^0.8. en: 2 sin x + x.
double notes_curve(Edition edition, double x);

struct NotesOptions {
  Edition edition = Edition::zh;
  int64_t points = 50;  // the English edition has 40
  double noise = 0.5;   // standard deviation; the English edition has 1
  static NotesOptions of(Edition edition);
};

/// The random stream of lab 10.2's data for a seed; `qkv data nadaraya-watson` uses the same stream.
Rng notes_rng(uint64_t seed, Edition edition);

/// Columns x (uniform in [0, 5), ascending) and y = curve(x) + noise.
Table nadaraya_watson_data(const Rng& rng, const NotesOptions& options = {});
/// Three people: waist and weight; waist, chest, weight and height.
Table waist_data();
Table measures_data();

}  // namespace qkv
