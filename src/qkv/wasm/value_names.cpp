// Names of values (core/language.h) that clang 14 calls at run time from some lambdas, although the operator is
// consteval and has no code: here it is compiled as constexpr (cmake/wasm.cmake), so that it has some.
#include "qkv/core/language.h"

namespace qkv {

template <detail::ValueName Name>
using Naming = detail::Naming<Name>;

template Naming<"i"> operator""_a<"i">();
template Naming<"name"> operator""_a<"name">();
template Naming<"word"> operator""_a<"word">();
template Naming<"value"> operator""_a<"value">();
template Naming<"number"> operator""_a<"number">();
template Naming<"problem"> operator""_a<"problem">();
template Naming<"expected"> operator""_a<"expected">();

}  // namespace qkv
