// Not installed.
namespace qkv {}
