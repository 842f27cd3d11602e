// The names of activations: one function may have several.
#include "qkv/tasks/pretrained/activations.h"

#include <utility>

#include "qkv/core/check.h"

namespace qkv {

Activation read_activation(const ModelJson& json, std::string_view key, std::string_view absent) {
  static constexpr std::pair<std::string_view, Activation> kNames[] = {{"relu", Activation::relu},
                                                                       {"gelu", Activation::gelu},
                                                                       {"gelu_new", Activation::gelu_tanh},
                                                                       {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                       {"gelu_fast", Activation::gelu_tanh},
                                                                       {"swish", Activation::silu},
                                                                       {"silu", Activation::silu}};
  const std::string word = json.word(key, std::string(absent));
  std::string known;
  for (const auto& [name, activation] : kNames) {
    if (name == word) return activation;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  refuse("{path}: \"{key}\" is \"{word}\", expected one of {known}", "path"_a = json.path(), "key"_a = key,
         "word"_a = word, "known"_a = known);
}

std::string activation_word(Activation activation, SiluWord silu) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_new";
    default:
      return silu == SiluWord::silu ? "silu" : "swish";
  }
}

}  // namespace qkv
