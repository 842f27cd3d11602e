// Edits of attention from JSON.
#include "qkv/serve/edits.h"

#include <algorithm>

#include "qkv/models/attention_paths.h"

namespace qkv::serve {
namespace {

constexpr size_t kMostEdits = 1000;
constexpr int64_t kMostTokens = 1'000'000;

// Path and head of an edit.
AttentionEdit place_of(const Fields& one, const std::vector<AttentionPlace>& places) {
  const std::string name = one.text("name");
  const int64_t layer = one.whole("layer", 1, 1000, 1);
  const auto place =
      std::ranges::find_if(places, [&](const AttentionPlace& p) { return p.part == name && p.layer == layer - 1; });
  require(place != places.end(), "edits: the model has no attention \"{name}\" in layer {layer}", "name"_a = name,
          "layer"_a = layer);
  AttentionEdit out{.path = place->path};
  if (one.has("head")) out.head = one.whole("head", 1, place->heads, 1) - 1;
  return out;
}

void read_what(const Fields& one, AttentionEdit& edit) {
  const std::string word = one.text("do");
  const auto known = names(EditKind{});
  const auto found = std::ranges::find(known, word);
  if (found == known.end()) refuse_word("do", word, {known.begin(), known.end()});
  edit.what = static_cast<EditKind>(found - known.begin());
  if (one.has("query")) edit.query = one.whole("query", 0, kMostTokens, 0);
  if (edit.what == EditKind::force) edit.keys = {one.whole("key", 0, kMostTokens, 0)};
  if (edit.what == EditKind::temperature) edit.temperature = one.number("value", 1e-3, 1e3, 1);
  if (edit.what == EditKind::mask)
    for (const double key : one.numbers("keys", kMostEdits)) {
      require(
          key >= 0 && key <= static_cast<double>(kMostTokens) && key == static_cast<double>(static_cast<int64_t>(key)),
          "{field}: expected whole numbers from 0 to {most}, got {value}", "field"_a = "keys", "most"_a = kMostTokens,
          "value"_a = key);
      edit.keys.push_back(static_cast<int64_t>(key));
    }
}

}  // namespace

bool edited(const Fields& in) { return in.has("edits") && !in.at("edits").empty(); }

AttentionEdits read_edits(const Fields& in, const ModelFacts& facts) {
  AttentionEdits out;
  if (!in.has("edits")) return out;
  const auto places = attention_places(facts);
  for (const Fields& one : in.objects("edits", kMostEdits)) {
    AttentionEdit edit = place_of(one, places);
    read_what(one, edit);
    check_edit(edit);
    out.push_back(std::move(edit));
  }
  return out;
}

AttentionEdits read_off(const Fields& in, const ModelFacts& facts) {
  AttentionEdits out;
  if (!in.has("off")) return out;
  const auto places = attention_places(facts);
  for (const Fields& one : in.objects("off", kMostEdits)) out.push_back(place_of(one, places));
  return out;
}

}  // namespace qkv::serve
