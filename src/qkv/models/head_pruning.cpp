// Which heads stay, and the matrices that are left.
#include "qkv/models/head_pruning.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/check.h"

namespace qkv {
namespace {

// The rows of x that belong to those units, `size` rows each.
Tensor rows_of(const Tensor& x, const std::vector<int64_t>& units, int64_t size) {
  const int64_t width = x.rank() == 1 ? 1 : x.numel() / std::max<int64_t>(x.size(0), 1);
  Shape shape = x.shape();
  shape.set(0, std::ssize(units) * size);
  Tensor out = Tensor::empty(shape);
  for (size_t u = 0; u < units.size(); ++u)
    std::copy_n(x.ptr() + units[u] * size * width, size * width,
                out.mutable_ptr() + static_cast<int64_t>(u) * size * width);
  return out;
}

// The columns of x (rows, columns) that belong to those units.
Tensor columns_of(const Tensor& x, const std::vector<int64_t>& units, int64_t size) {
  const int64_t rows = x.size(0), before = x.size(1), after = std::ssize(units) * size;
  Tensor out = Tensor::empty({rows, after});
  for (int64_t r = 0; r < rows; ++r)
    for (size_t u = 0; u < units.size(); ++u)
      std::copy_n(x.ptr() + r * before + units[u] * size, size,
                  out.mutable_ptr() + r * after + static_cast<int64_t>(u) * size);
  return out;
}

// What is left of a parameter of an attention; `name` is the part after the attention's path.
Tensor left_of(const Tensor& x, const std::string& name, const TransformerConfig& config,
               const std::vector<int64_t>& units) {
  const int64_t head = config.hidden / config.heads, shared = config.shared_heads();
  if (name == "to_q.weight" || name == "to_q.bias") return rows_of(x, units, head * shared);
  if (name.starts_with("to_k.") || name.starts_with("to_v.")) return rows_of(x, units, head);
  if (name == "to_out.weight") return columns_of(x, units, head * shared);
  if (name == "relative.table") return rows_of(x, units, shared);
  return x;
}

void check_kept(const std::vector<PrunableAttention>& all, const KeptUnits& kept) {
  check(all.size() == kept.size(), "[prune] the model has ", all.size(), " attentions, got ", kept.size());
  for (size_t i = 0; i < all.size(); ++i)
    require(!kept[i].empty(), "all {units} heads of {path} would be removed: an attention needs at least one",
            "units"_a = all[i].units, "path"_a = all[i].path);
}

}  // namespace

std::vector<PrunableAttention> prunable_attentions(const TransformerConfig& config) {
  std::vector<PrunableAttention> out;
  const auto add = [&](AttentionPart part, int64_t layers, const char* stack, const char* name) {
    for (int64_t layer = 0; layer < layers; ++layer)
      out.push_back(
          {text(stack, ".", layer, ".", name), part, layer, config.heads_of(part, layer) / config.shared_heads()});
  };
  add(AttentionPart::encoder, config.layers, "encoder", "self");
  add(AttentionPart::decoder, config.decoder_depth(), "decoder", "self");
  add(AttentionPart::cross, config.decoder_depth(), "decoder", "cross");
  return out;
}

KeptUnits most_important(const std::vector<std::vector<double>>& importance, double keep) {
  int64_t all = 0;
  std::vector<std::pair<size_t, int64_t>> order;  // attention and unit, least important first
  KeptUnits kept;
  for (size_t a = 0; a < importance.size(); ++a) {
    all += std::ssize(importance[a]);
    kept.emplace_back(importance[a].size());
    std::iota(kept.back().begin(), kept.back().end(), 0);
    for (int64_t u = 0; u < std::ssize(importance[a]); ++u) order.emplace_back(a, u);
  }
  const auto value = [&](const auto& unit) { return importance[unit.first][static_cast<size_t>(unit.second)]; };
  std::ranges::stable_sort(order, [&](const auto& x, const auto& y) { return value(x) < value(y); });
  const int64_t wanted = std::llround(keep * static_cast<double>(all));
  require(wanted >= std::ssize(importance),
          "keeping {keep} of {all} heads leaves {wanted}, but each of the {count} attentions needs at least one",
          "keep"_a = keep, "all"_a = all, "wanted"_a = wanted, "count"_a = importance.size());
  int64_t left = all;
  for (const auto& [attention, unit] : order) {
    if (left == wanted) break;
    if (kept[attention].size() == 1) continue;
    std::erase(kept[attention], unit);
    --left;
  }
  return kept;
}

TransformerConfig pruned(const TransformerConfig& config, const KeptUnits& kept) {
  const std::vector<PrunableAttention> all = prunable_attentions(config);
  check_kept(all, kept);
  require(config.positions != PositionKind::alibi,
          "model.positions alibi gives every head a slope by its number: heads cannot be removed");
  std::map<AttentionPart, std::vector<int64_t>> counts;
  for (size_t i = 0; i < all.size(); ++i) counts[all[i].part].push_back(std::ssize(kept[i]) * config.shared_heads());
  TransformerConfig out = config;
  for (const auto& [part, of_layers] : counts) out.set_heads(part, of_layers);
  return out;
}

std::map<std::string, Tensor> pruned(const Parameters& parameters, const TransformerConfig& config,
                                     const KeptUnits& kept) {
  const std::vector<PrunableAttention> all = prunable_attentions(config);
  check_kept(all, kept);
  std::map<std::string, Tensor> out;
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const std::string& name = parameters.entries()[i].name;
    const Tensor x = parameters.values(i);
    const auto at = std::ranges::find_if(
        all, [&](const PrunableAttention& attention) { return name.starts_with(attention.path + "."); });
    out[name] = at == all.end()
                    ? x
                    : left_of(x, name.substr(at->path.size() + 1), config, kept[static_cast<size_t>(at - all.begin())]);
  }
  return out;
}

}  // namespace qkv
