// The files of web/dist as bytes of the program: the assembler reads them, so no compiler limit on texts applies.
#include "qkv/serve/page.h"

#define QKV_BYTES_OF(name, file)                                                                      \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name "_end:\n.popsection\n"); \
  extern "C" const char name##_begin[], name##_end[];

QKV_BYTES_OF(qkv_page, QKV_PAGE_FOLDER "/index.html")
QKV_BYTES_OF(qkv_policy, QKV_PAGE_FOLDER "/csp.txt")

namespace qkv::serve {

std::string_view page_html() { return {qkv_page_begin, static_cast<size_t>(qkv_page_end - qkv_page_begin)}; }

std::string_view page_policy() {
  std::string_view text(qkv_policy_begin, static_cast<size_t>(qkv_policy_end - qkv_policy_begin));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace qkv::serve
