// What libqkv exports: a header that opens its namespace with QKV_API is installed, and its symbols are visible.
// Everything else is hidden.
#pragma once

#define QKV_API [[gnu::visibility("default")]]
