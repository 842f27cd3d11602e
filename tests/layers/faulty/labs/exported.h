// A lab that would be installed.
namespace QKV_API qkv {}
