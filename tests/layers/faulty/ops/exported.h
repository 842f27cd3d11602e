// A public header that needs an internal one.
#include "qkv/ops/inside.h"
namespace QKV_API qkv {}
