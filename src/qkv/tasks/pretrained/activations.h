// Activations by the names that pretrained folders give them.
#pragma once

#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/forms.h"
#include "qkv/tasks/pretrained/model_json.h"

namespace QKV_API qkv {

/// The activation that a key of config.json names; `absent` is the name it has by default.
Activation read_activation(const ModelJson& json, std::string_view key, std::string_view absent);

/// The name of an activation in config.json; silu has two.
enum class SiluWord { silu, swish };
std::string activation_word(Activation activation, SiluWord silu);

}  // namespace qkv
