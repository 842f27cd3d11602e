// Models as JSON, for requests and for events.
#pragma once

#include "qkv/serve/call.h"

namespace qkv::serve {

Json model_json(const ShelfModel& model, Language language);
/// The training that the server has started, or null: {"state": "failed", "name": "explorer", "error": "..."}
Json background_json(const ModelShelf& shelf, Language language);
/// {"models": [...], "background": ...}
Json models_json(const ModelShelf& shelf, Language language);

}  // namespace qkv::serve
