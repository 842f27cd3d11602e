// qkv data nadaraya-watson, waist, measures: the small tables of the chapter's notes.
#include <cstdio>

#include "qkv/cli/data.h"
#include "qkv/data/notes.h"

namespace qkv::cli {
namespace {

Table make(const DataOptions& o, uint64_t seed) {
  if (o.name == "waist") return waist_data();
  if (o.name == "measures") return measures_data();
  NotesOptions notes = NotesOptions::of(o.edition.value_or(Edition::zh));
  notes.points = o.points.value_or(notes.points);
  notes.noise = o.noise.value_or(notes.noise);
  return nadaraya_watson_data(notes_rng(seed, notes.edition), notes);
}

}  // namespace

int data_notes(const DataOptions& o, const Global& global) {
  if (o.output && !o.output->ends_with(".csv"))
    throw UsageError(tr("--output: expected a .csv file, got \"{output}\"", "output"_a = *o.output));
  const Table table = make(o, global.seed);
  if (o.output) {
    write_csv(*o.output, table);
    return 0;
  }
  const std::string csv = csv_text(table);
  std::fwrite(csv.data(), 1, csv.size(), stdout);
  return 0;
}

}  // namespace qkv::cli
