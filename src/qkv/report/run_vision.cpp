// What a run of image classification says about itself: images and classes.
#include <nlohmann/json.hpp>

#include "qkv/core/names.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/vision/data.h"

namespace qkv::report {

Text data_text(const VisionDataConfig& d) {
  if (d.built_in())
    return tr("pictures, the built-in set ({count} pictures)",
              "count"_a = grouped(static_cast<uint64_t>(d.picture_count)));
  if (d.fashion()) return verbatim("Fashion-MNIST");
  return verbatim(printable(d.images));
}

RunFacts run_facts(const VisionConfig& config, const std::string& folder) {
  const VisionDataConfig& d = config.data;
  const ImageFacts facts = load_image_facts(folder);
  const nlohmann::ordered_json json = {
      {"model", nlohmann::ordered_json::object()},
      {"data", {{"images", d.images}, {"labels", d.labels}, {"shift", d.shift}, {"flip", d.flip}}},
      {"images",
       {{"channels", facts.size.channels},
        {"height", facts.size.height},
        {"width", facts.size.width},
        {"classes", facts.classes}}}};
  std::vector<std::string> names;
  for (const std::string& name : facts.classes) {
    if (names.size() == 12) break;
    names.push_back(printable(name));
  }
  const Text listed_names =
      names.size() < facts.classes.size()
          ? tr("{names} and {more} more", "names"_a = listed(names), "more"_a = facts.classes.size() - names.size())
          : verbatim(listed(names));
  return {config.facts().summary,
          {tr("data        {data}\n", "data"_a = data_text(d)),
           tr("images      {size} pixels, {count} classes: {names}\n", "size"_a = size_text(facts.size),
              "count"_a = facts.classes.size(), "names"_a = listed_names)},
          json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
          false};
}

}  // namespace qkv::report
