// Reading for qkv attend.
#include "qkv/cli/attend_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "qkv/cli/command.h"
#include "qkv/io/csv.h"
#include "qkv/io/npy.h"
#include "qkv/io/safetensors.h"

namespace qkv::cli {
namespace {

// "2,6" as numbers; nothing if the text is not such a list.
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
    throw UsageError(tr("--valid-lens takes lengths such as 2,6 or an .npy file, got \"{given}\"", "given"_a = given));
  return Mask::valid_lens(read_npy(given).to_ids(given));
}

Mask mask_of_window(const std::string& given) {
  const auto sizes = whole_numbers(given);
  if (!sizes || sizes->size() != 2 || sizes->front() < 0 || sizes->back() < 0)
    throw UsageError(tr("--window takes the number of keys to the left and to the right, such as 2,0, got \"{given}\"",
                        "given"_a = given));
  return Mask::window(sizes->front(), sizes->back());
}

// A parameter of the scorer from --params.
Tensor parameter_of(const ScorerOptions& options, const std::string& parameter) {
  if (!options.params)
    throw UsageError(tr("--score {kind} needs --params FILE.safetensors with the tensor \"{parameter}\"",
                        "kind"_a = options.kind, "parameter"_a = parameter));
  const SafetensorsFile file(*options.params);
  require(file.has(parameter), "{params}: --score {kind} needs a tensor \"{parameter}\"", "params"_a = *options.params,
          "kind"_a = options.kind, "parameter"_a = parameter);
  return file.tensor(parameter);
}

// "a, b and c".
Text with_and(const std::vector<std::string>& words) {
  const std::vector<std::string> first(words.begin(), words.end() - 1);
  return first.empty() ? verbatim(words.back())
                       : tr("{first} and {last}", "first"_a = listed(first), "last"_a = words.back());
}

template <class Condition>
std::vector<std::string> scorers_where(const Condition& condition) {
  std::vector<std::string> names;
  for (const ScorerKind kind : offered_scorers())
    if (condition(kind)) names.emplace_back(name_of(kind));
  return names;
}

// A numeric option: whether scorers take it, and the tensor of --params with the same meaning.
struct NumberOption {
  const char *name, *tensor;
  std::optional<double> ScorerOptions::*given;
  bool ScorerInputs::*taken;
  bool positive = true;
};
constexpr NumberOption kNumbers[] = {
    {"--scale", "scale", &ScorerOptions::scale, &ScorerInputs::scale, false},
    {"--bandwidth", "width", &ScorerOptions::bandwidth, &ScorerInputs::bandwidth},
    {"--temperature", "temperature", &ScorerOptions::temperature, &ScorerInputs::temperature}};

bool has_tensor(const ScorerInputs& inputs, const std::string& name) {
  return std::any_of(inputs.tensors.begin(), inputs.tensors.end(),
                     [&](const auto& parameter) { return parameter.name == name; });
}

void refuse_unused(const ScorerOptions& o, const ScorerInputs& inputs) {
  for (const NumberOption& n : kNumbers) {
    const auto& value = o.*n.given;
    if (!value) continue;
    const auto takers = scorers_where([&](ScorerKind kind) { return inputs_of(kind).*n.taken; });
    if (!(inputs.*n.taken))
      throw UsageError(tr("{option} is for --score {takers}, not {kind}", "option"_a = n.name,
                          "takers"_a = with_and(takers), "kind"_a = o.kind));
    if (n.positive && !(*value > 0))
      throw UsageError(tr("{name} must be positive, got {value}", "name"_a = n.name, "value"_a = *value));
    const auto as_float = [](double x) { return std::isfinite(static_cast<float>(x)); };
    if (!as_float(*value) || (n.positive && !as_float(1 / *value)))
      throw UsageError(n.positive
                           ? tr("{option} and its reciprocal must fit in a float, got {value}", "option"_a = n.name,
                                "value"_a = *value)
                           : tr("{option} must fit in a float, got {value}", "option"_a = n.name, "value"_a = *value));
    if (o.params && has_tensor(inputs, n.tensor))
      throw UsageError(
          tr("{name} and --params both give the {tensor}: use one of them", "name"_a = n.name, "tensor"_a = n.tensor));
  }
  if (o.params && inputs.tensors.empty())
    throw UsageError(tr("--score {kind} has no parameters, but --params is given", "kind"_a = o.kind));
}

}  // namespace

Tensor read_tensor(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path).to_tensor(path);
  if (!path.ends_with(".csv")) throw Error(tr("{path}: expected a .npy or .csv file", "path"_a = path));
  const Table table = read_csv(path).table;
  const auto columns = static_cast<int64_t>(table.columns.size());
  Tensor out = Tensor::empty({table.rows(), columns});
  for (int64_t n = 0; n < out.numel(); ++n)
    out.mutable_ptr()[n] =
        static_cast<float>(table.columns[static_cast<size_t>(n % columns)][static_cast<size_t>(n / columns)]);
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

std::vector<ScorerKind> offered_scorers() {
  std::vector<ScorerKind> all = every<ScorerKind>();
  std::erase(all, ScorerKind::none);
  return all;
}

AnyScorer read_scorer(const ScorerOptions& o) {
  const ScorerInputs inputs = inputs_of(o.kind);
  refuse_unused(o, inputs);
  ScorerValues values{o.scale, o.bandwidth, o.temperature, {}};
  for (const auto& [name, needed] : inputs.tensors)
    if (needed || o.params) values.tensors[name] = parameter_of(o, name);
  return make_scorer(o.kind, values);
}

Text params_help() {
  Text list;
  std::set<std::string_view> said;
  for (const ScorerKind kind : offered_scorers()) {
    const std::string_view tensors = facts_of(kind).tensors;
    if (tensors.empty() || !said.insert(tensors).second) continue;
    const auto owners = scorers_where([&](ScorerKind other) { return facts_of(other).tensors == tensors; });
    const Text row = tr("{tensors} for {scorers}", "tensors"_a = tensors, "scorers"_a = with_and(owners));
    list = list.empty() ? row : tr("{before}; {help}", "before"_a = list, "help"_a = row);
  }
  return tr(".safetensors of parameters: {list}", "list"_a = list);
}

}  // namespace qkv::cli
