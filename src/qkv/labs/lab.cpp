// Pages, and the list of labs.
#include "qkv/labs/lab.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/labs/sections.h"

namespace qkv::labs {

void Page::add(Block block) {
  blocks_.push_back(std::move(block));
  if (watch) watch(blocks_.back());
}

void Page::table(std::vector<Text> head, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<Text>> cells;
  for (const auto& row : rows) {
    cells.emplace_back();
    for (const std::string& cell : row) cells.back().emplace_back(cell);
  }
  add(Table{std::move(head), std::move(cells)});
}

int64_t Page::claims() const {
  return std::count_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return std::holds_alternative<Claim>(b); });
}

int64_t Page::failed_claims() const {
  return std::count_if(blocks_.begin(), blocks_.end(),
                       [](const Block& b) { return std::holds_alternative<Claim>(b) && !std::get<Claim>(b).holds; });
}

const std::vector<Lab>& all_labs() {
  static const std::vector<Lab> labs = {engine_lab(),      cues_lab(),       regression_lab(),     scoring_lab(),
                                        bahdanau_lab(),    multi_head_lab(), self_attention_lab(), transformer_lab(),
                                        long_inputs_lab(), vision_lab(),     language_lab()};
  return labs;
}

const Lab* find_lab(const std::string& name) {
  for (const Lab& lab : all_labs())
    if (lab.name == name || lab.section == name) return &lab;
  // Sections 11.1 to 11.7 of the English edition are those of chapter 10.
  return name.starts_with("11.") ? find_lab("10." + name.substr(3)) : nullptr;
}

Page run(const Lab& lab, const LabOptions& options, std::function<void(const Block&)> watch,
         std::function<void(const Text& what, double done)> at_work) {
  require(options.data.empty() || lab.takes_data, "lab {name} takes no data; got \"{data}\"", "name"_a = lab.name,
          "data"_a = options.data);
  Page page(options);
  page.watch = std::move(watch);
  page.at_work = std::move(at_work);
  for (auto* step : lab.steps) step(page);
  page.forget();
  page.watch = {};
  page.at_work = {};
  return page;
}

}  // namespace qkv::labs
