// Models as JSON, for requests and for events.
#pragma once

#include "qkv/serve/call.h"

namespace qkv::serve {

Json model_json(const ShelfModel& model, Language language);
/// {"models": [...]}
Json models_json(const ModelShelf& shelf, Language language);

}  // namespace qkv::serve
