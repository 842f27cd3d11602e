// Calls a list of callbacks in order.
#include "qkv/train/callback.h"

#include <algorithm>

namespace qkv {

void Callbacks::after_epoch(Progress& p) {
  for (Callback* c : list_) c->after_epoch(p);
}

bool Callbacks::ends_training() const {
  return std::any_of(list_.begin(), list_.end(), [](const Callback* c) { return c->ends_training(); });
}

void Callbacks::save(Checkpoint& out) const {
  for (const Callback* c : list_) c->save(out);
}

void Callbacks::saved() const {
  for (const Callback* c : list_) c->saved();
}

void Callbacks::restore(const Checkpoint& in) {
  for (Callback* c : list_) c->restore(in);
}

}  // namespace qkv
