// The layout of flat parameters.
#include "qkv/nn/module.h"

#include <algorithm>

namespace qkv {

void Parameters::lay_out(const std::vector<NamedTensor>& list) {
  int64_t total = 0;
  for (const auto& p : list) {
    entries_.push_back({p.name, p.tensor.shape(), total});
    offsets_.push_back(total);
    leaf_before_.push_back(p.tensor.leaf_id());
    total += (p.tensor.numel() + 15) / 16 * 16;
  }
  offsets_.push_back(total);
  flat_ = zeros({total});
  for (size_t i = 0; i < list.size(); ++i)
    std::copy_n(list[i].tensor.ptr(), list[i].tensor.numel(), flat_.mutable_ptr() + offsets_[i]);
  first_leaf_ = reserve_leaves(static_cast<uint32_t>(list.size()));
}

std::string Parameters::name_before(uint32_t leaf) const {
  const auto found = std::find(leaf_before_.begin(), leaf_before_.end(), leaf);
  return found == leaf_before_.end() ? "" : entries_[static_cast<size_t>(found - leaf_before_.begin())].name;
}

Tensor Parameters::leaf(size_t i) const { return parameter(values(i), first_leaf_ + static_cast<uint32_t>(i)); }

int64_t Parameters::count() const {
  int64_t n = 0;
  for (const auto& entry : entries_) n += entry.shape.numel();
  return n;
}

}  // namespace qkv
