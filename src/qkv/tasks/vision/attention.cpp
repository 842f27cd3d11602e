// Maps over an image.
#include "qkv/tasks/vision/attention.h"

#include "qkv/core/check.h"
#include "qkv/models/attention_paths.h"

namespace qkv {

ImageAttention image_attention(const VisionTransformer& model, const Tensor& image, const AttentionEdits& edits) {
  check(image.rank() == 4 && image.size(0) == 1, "[image_attention] expected one image, got ", image.shape());
  check_edits(edits, model.config.facts());
  const StackAttention seen = stack_attention(
      model.encoder, "encoder", [&](const Run& run) { model.features(image, run); }, edits);
  return {seen.weights, seen.value_weighted, model.size.height / model.config.patch,
          model.size.width / model.config.patch, model.cls.defined()};
}

Tensor seen_patches(const ImageAttention& seen, const Tensor& maps, const Viewer& viewer) {
  const int64_t patches = seen.patch_rows * seen.patch_columns, first = seen.class_token ? 1 : 0,
                tokens = patches + first, count = maps.size(0) * maps.size(1);
  check(maps.rank() == 4 && maps.size(2) == tokens && maps.size(3) == tokens, "[seen_patches] maps ", maps.shape(),
        " are not of ", tokens, " tokens");
  check(!viewer.patch || (*viewer.patch >= 0 && *viewer.patch < patches), "[seen_patches] patch ",
        viewer.patch.value_or(0), " is outside ", patches, " patches");
  const bool mean = !viewer.patch && !seen.class_token;
  const int64_t begin = viewer.patch ? first + *viewer.patch : 0, rows = mean ? tokens : 1;
  Tensor out = Tensor::empty({maps.size(0), maps.size(1), seen.patch_rows, seen.patch_columns});
  for (int64_t m = 0; m < count; ++m)
    for (int64_t p = 0; p < patches; ++p) {
      double sum = 0;
      for (int64_t r = begin; r < begin + rows; ++r) sum += maps.ptr()[(m * tokens + r) * tokens + first + p];
      out.mutable_ptr()[m * patches + p] = static_cast<float>(sum / static_cast<double>(rows));
    }
  return out;
}

}  // namespace qkv
