// Edits of attention: heads switched off, rows forced onto a key or flattened, temperatures, hidden keys; in any
// attention of any model, in a whole forward pass and while decoding.
//
//   EditProbe probe({{.path = "decoder.1.cross", .what = EditKind::force, .head = 3, .keys = {2}}});
//   const Tensor logits = model.logits(source, lens, target, Run{.probe = &probe});
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/ops/attention_plan.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// off: weights 0, so that the head adds nothing. flat: equal weights on all keys that the row sees. force: weight 1 on
/// one key. temperature: alpha^(1/t), divided by its sum. mask: 0 on these keys, the others divided by their sum; a row
/// with none left is 0.
enum class EditKind { off, flat, force, temperature, mask };
constexpr std::array<std::string_view, 5> names(EditKind) { return {"off", "flat", "force", "temperature", "mask"}; }

/// One change. Everything counts from 0. While decoding, query i is the i-th token that a row has read.
struct AttentionEdit {
  std::string path = {};  // of the attention: "encoder.0.self"
  EditKind what = EditKind::off;
  std::optional<int64_t> head = {}, query = {};  // absent: all
  std::vector<int64_t> keys = {};                // force: one; mask: one or more
  double temperature = 1;                        // temperature: greater than 0
  bool operator==(const AttentionEdit&) const = default;
};

/// Applied in order: a later edit sees what earlier ones left, and `flat`, `force` and `off` replace it. A key that a
/// row does not see (it is padding, in the future, absent or masked by an earlier edit) cannot be forced: that row
/// stays as it is.
using AttentionEdits = std::vector<AttentionEdit>;

/// Refuses an edit that has no meaning in any model: keys that are missing or negative, a temperature of 0.
void check_edit(const AttentionEdit& edit);

/// The weights of an attention before they are used.
struct EditableWeights {
  const Tensor& scores;                    // (B, H, Lq, Lk), biases added
  const AttentionPlan& plan;               // which keys a row sees
  std::span<const int32_t> first_queries;  // (B) or empty: query 0 of batch row b has this number, else 0
  Tensor& weights;                         // (B, H, Lq, Lk), to be changed in place
};

/// A probe that applies edits, and shows what is left to another probe. The path of an edit that is never met has no
/// effect here; check_edits (models/attention_paths.h) refuses it.
class EditProbe : public Probe {
 public:
  explicit EditProbe(AttentionEdits edits, Probe* then = nullptr);
  const AttentionEdits& edits() const { return edits_; }
  /// Who observes from now on, or null.
  void show_to(Probe* then) { then_ = then; }

  void attention(std::string_view path, const Weights& weights) override;
  void values(std::string_view path, const Tensor& v) override;
  bool edits(std::string_view path) const override;
  void edit(std::string_view path, EditableWeights& weights) override;

 private:
  AttentionEdits edits_;
  Probe* then_;
};

}  // namespace qkv
