// The files of web/dist as bytes of the program: the assembler reads them, so no compiler limit on texts applies.
#include "qkv/serve/page.h"

#define QKV_BYTES_OF(name, file)                                                                      \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name "_end:\n.popsection\n"); \
  extern "C" const char name##_begin[], name##_end[];

QKV_BYTES_OF(qkv_page, QKV_PAGE_FOLDER "/index.html")
QKV_BYTES_OF(qkv_policy, QKV_PAGE_FOLDER "/csp.txt")
#ifdef QKV_HAS_ENGINE
QKV_BYTES_OF(qkv_engine_worker, QKV_PAGE_FOLDER "/engine/worker.js.gz")
QKV_BYTES_OF(qkv_engine_wasm, QKV_PAGE_FOLDER "/engine/engine.wasm.gz")
QKV_BYTES_OF(qkv_engine_chinese, QKV_PAGE_FOLDER "/engine/zh.po.gz")
#endif

namespace qkv::serve {

namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

}  // namespace

std::string_view page_html() { return between(qkv_page_begin, qkv_page_end); }

std::optional<PageEngine> page_engine() {
#ifdef QKV_HAS_ENGINE
  return PageEngine{between(qkv_engine_worker_begin, qkv_engine_worker_end),
                    between(qkv_engine_wasm_begin, qkv_engine_wasm_end),
                    between(qkv_engine_chinese_begin, qkv_engine_chinese_end)};
#else
  return {};
#endif
}

std::string_view page_policy() {
  std::string_view text = between(qkv_policy_begin, qkv_policy_end);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace qkv::serve
