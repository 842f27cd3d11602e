// qkv inspect for images: what a vision Transformer attends to, drawn over the image.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "qkv/cli/inspect.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/report/image_maps.h"

namespace qkv::cli {
namespace {

// "2,3" as the number of a patch.
Viewer viewer_of(const InspectOptions& o, const Classifier& classifier) {
  if (!o.patch) return {};
  const auto [row, column] = two_numbers("--patch", *o.patch, ',');
  const ImageSize& size = classifier.facts().size;
  const int64_t patch = classifier.config().model.patch, rows = size.height / patch, columns = size.width / patch;
  if (row != std::floor(row) || column != std::floor(column) || row < 1 || column < 1 ||
      row > static_cast<double>(rows) || column > static_cast<double>(columns))
    throw UsageError(tr("--patch {patch}: expected a row from 1 to {rows} and a column from 1 to {columns}",
                        "patch"_a = *o.patch, "rows"_a = rows, "columns"_a = columns));
  return {(static_cast<int64_t>(row) - 1) * columns + static_cast<int64_t>(column) - 1};
}

}  // namespace

int inspect_vision(const InspectOptions& o, const Global& global) {
  if (!o.pairs.empty() || o.target || o.beam || o.steps || o.choice.kind != "all" || o.by_word)
    throw UsageError(tr("--pairs, --target, --beam, --steps, --kind and --words are for models of text"));
  if (o.words.size() != 1) throw UsageError(tr("give one image, got {count} words", "count"_a = o.words.size()));
  const std::string& file = o.words[0];
  const Classifier classifier(o.model);
  note_unfinished(o.model, global);
  const ImageSet set = read_image_file(file);
  require(set.count() == 1, "{file}: has {count} images, expected a PNG file", "file"_a = file,
          "count"_a = set.count());
  classifier.check_size(set, file, o.resize ? OtherSizes::stretched : OtherSizes::refused);
  ImageSet unlabelled = set;
  unlabelled.labels.clear();
  const report::SeenImage seen = report::seen_image(classifier, unlabelled, 0, file, viewer_of(o, classifier));
  if (o.json) {
    fmt::print("{}\n", report::to_json(seen, o.choice));
    return 0;
  }
  const std::string title = report::to_text(seen.answer);
  if (o.writes(".npz")) return write_arrays(o, title, report::to_arrays(seen, o.choice), global);
  const bool text = !o.output || o.output->ends_with(".txt");
  const auto figures =
      report::image_figures(seen, o.choice, text ? report::FigureUse::terminal : report::FigureUse::paper);
  return show_figures(
      o, title, figures, [&] { return report::to_html(seen, figures, global.language); }, global);
}

}  // namespace qkv::cli
