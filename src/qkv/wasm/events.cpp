// Events of the engine go to its page while they happen; nobody waits for them inside.
#include "qkv/serve/events.h"

#include <emscripten.h>

EM_JS(void, qkv_heard, (const char* name, const char* json), {
  if (Module.heard) Module.heard(UTF8ToString(name), UTF8ToString(json));
});

namespace qkv::serve {

void EventHub::publish(std::string name, std::string json) { qkv_heard(name.c_str(), json.c_str()); }
uint64_t EventHub::next() const { return 0; }
std::optional<Event> EventHub::wait(uint64_t&, double) { return {}; }
void EventHub::close() {}
bool EventHub::closed() const { return false; }

}  // namespace qkv::serve
