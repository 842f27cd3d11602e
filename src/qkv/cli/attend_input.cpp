// Reading for qkv attend.
#include "qkv/cli/attend_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "qkv/cli/command.h"
#include "qkv/io/csv.h"
#include "qkv/io/npy.h"
#include "qkv/io/safetensors.h"

namespace qkv::cli {
namespace {

// "2,6" as numbers; nothing when it is no such list.
std::optional<std::vector<int32_t>> whole_numbers(const std::string& list) {
  std::vector<int32_t> out;
  const char *at = list.data(), *end = at + list.size();
  while (true) {
    int32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || next == at) return {};
    out.push_back(value);
    if (next == end) return out;
    if (*next != ',') return {};
    at = next + 1;
  }
}

Mask mask_of_lengths(const std::string& given) {
  if (const auto list = whole_numbers(given)) return Mask::valid_lens(Ids({static_cast<int64_t>(list->size())}, *list));
  if (!given.ends_with(".npy"))
    throw UsageError(text("--valid-lens takes lengths such as 2,6 or an .npy file, got \"", given, "\""));
  return Mask::valid_lens(read_npy(given).to_ids(given));
}

Mask mask_of_window(const std::string& given) {
  const auto sizes = whole_numbers(given);
  if (!sizes || sizes->size() != 2 || sizes->front() < 0 || sizes->back() < 0)
    throw UsageError(text("--window takes how many keys to the left and to the right, such as 2,0, got \"", given, "\""));
  return Mask::window(sizes->front(), sizes->back());
}

// A parameter of the scorer from --params.
Tensor parameter_of(const ScorerOptions& options, const std::string& parameter) {
  if (!options.params)
    throw UsageError(text("--score ", options.name, " needs --params FILE.safetensors with the tensor \"", parameter, "\""));
  const SafetensorsFile file(*options.params);
  check(file.has(parameter), *options.params, ": --score ", options.name, " needs a tensor \"", parameter, "\"");
  return file.tensor(parameter);
}

Tensor width_of(const ScorerOptions& options) {
  if (options.bandwidth && options.params) throw UsageError("--bandwidth and --params both give the width: use one of them");
  if (options.params) return parameter_of(options, "width");
  if (options.bandwidth && !(*options.bandwidth > 0)) throw UsageError(text("--bandwidth must be positive, got ", *options.bandwidth));
  if (options.bandwidth && !std::isfinite(static_cast<float>(1 / *options.bandwidth)))
    throw UsageError(text("--bandwidth must be a number that a float can hold, and one over it too, got ", *options.bandwidth));
  return scalar(static_cast<float>(1 / options.bandwidth.value_or(1)));
}

void refuse_unused(const ScorerOptions& o) {
  const auto is = [&](std::initializer_list<const char*> names) { return std::find(names.begin(), names.end(), o.name) != names.end(); };
  if (o.scale && o.name != "scaled-dot") throw UsageError(text("--scale is for --score scaled-dot, not ", o.name));
  if (o.bandwidth && !is({"gaussian", "boxcar", "triangular", "epanechnikov"}))
    throw UsageError(text("--bandwidth is for the kernels gaussian, boxcar, triangular and epanechnikov, not ", o.name));
  if (o.temperature && !is({"cosine", "salience"})) throw UsageError(text("--temperature is for cosine and salience, not ", o.name));
  if (o.temperature && !(*o.temperature > 0)) throw UsageError(text("--temperature must be positive, got ", *o.temperature));
  const auto as_float = [](double x) { return std::isfinite(static_cast<float>(x)); };
  if (o.scale && !as_float(*o.scale)) throw UsageError(text("--scale must be a number that a float can hold, got ", *o.scale));
  if (o.temperature && !(as_float(*o.temperature) && as_float(1 / *o.temperature)))
    throw UsageError(text("--temperature must be a number that a float can hold, and one over it too, got ", *o.temperature));
  if (o.params && is({"constant", "dot", "scaled-dot", "cosine", "negative-squared-distance"}))
    throw UsageError(text("--score ", o.name, " has no parameters, but --params is given"));
}

}  // namespace

Tensor read_tensor(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path).to_tensor(path);
  if (!path.ends_with(".csv")) throw Error(text(path, ": expected a .npy or .csv file"));
  const Table table = read_csv(path).table;
  const auto columns = static_cast<int64_t>(table.columns.size());
  Tensor out = Tensor::empty({table.rows(), columns});
  for (int64_t n = 0; n < out.numel(); ++n)
    out.mutable_ptr()[n] = static_cast<float>(table.columns[static_cast<size_t>(n % columns)][static_cast<size_t>(n / columns)]);
  return out;
}

Mask read_mask(const MaskOptions& options) {
  Mask mask;
  if (options.valid_lens) mask = mask & mask_of_lengths(*options.valid_lens);
  if (options.causal) mask = mask & Mask::causal();
  if (options.window) mask = mask & mask_of_window(*options.window);
  if (options.keep) mask = mask & Mask::keep(read_tensor(*options.keep));
  if (options.bias) mask = mask & Mask::bias(read_tensor(*options.bias));
  return mask;
}

const std::vector<std::string>& scorer_names() {
  static const std::vector<std::string> names = {"constant", "salience", "gaussian", "boxcar", "triangular", "epanechnikov",
                                                 "negative-squared-distance", "dot", "scaled-dot", "bilinear", "cosine", "vector-sum",
                                                 "additive"};
  return names;
}

AnyScorer read_scorer(const ScorerOptions& o) {
  refuse_unused(o);
  const auto temperature = static_cast<float>(o.temperature.value_or(1));
  if (o.name == "constant") return Constant{};
  if (o.name == "salience") return Salience{parameter_of(o, "w"), temperature};
  if (o.name == "gaussian") return Gaussian{width_of(o)};
  if (o.name == "boxcar") return Boxcar{width_of(o)};
  if (o.name == "triangular") return Triangular{width_of(o)};
  if (o.name == "epanechnikov") return Epanechnikov{width_of(o)};
  if (o.name == "negative-squared-distance") return NegativeSquaredDistance{};
  if (o.name == "dot") return Dot{};
  if (o.name == "bilinear") return Bilinear{parameter_of(o, "W")};
  if (o.name == "cosine") return Cosine{scalar(temperature)};
  if (o.name == "vector-sum") return o.params ? VectorSum{parameter_of(o, "w")} : VectorSum{};
  if (o.name == "additive") return Additive{parameter_of(o, "W_q"), parameter_of(o, "W_k"), parameter_of(o, "w_v")};
  return o.scale ? ScaledDot{static_cast<float>(*o.scale)} : ScaledDot{};
}

ScorerFacts scorer_facts(const std::string& name) {
  static const std::map<std::string, ScorerFacts> facts = {
      {"constant", {"0", false}},
      {"salience", {"w . k / temperature", false}},
      {"gaussian", {"-u^2 / 2, u = |w (q - k)|", true}},
      {"boxcar", {"log 1 where u <= 1, u = |w (q - k)|, else log 0", true}},
      {"triangular", {"log max(0, 1 - u), u = |w (q - k)|", true}},
      {"epanechnikov", {"log max(0, 1 - u^2), u = |w (q - k)|", true}},
      {"negative-squared-distance", {"-|q - k|^2", true}},
      {"dot", {"Q K^T", true}},
      {"scaled-dot", {"Q K^T", true}},
      {"bilinear", {"Q W K^T", false}},
      {"cosine", {"cos(q, k) / temperature", true}},
      {"vector-sum", {"w . (q + k)", true}},
      {"additive", {"w_v . tanh(W_q q + W_k k)", false}}};
  return facts.at(name);
}

}  // namespace qkv::cli
