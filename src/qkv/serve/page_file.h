// Pages that need no server: the explorer with the engine and models inside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::serve {

/// A text in both languages; the page shows one of them.
std::string both(const Text& text);

/// A file as the engine reads it, "/models/NAME/config.yaml", packed as a page carries it.
struct EngineFile {
  std::string path, packed;
};
EngineFile engine_file(std::string path, std::string_view bytes);

/// The files of a run folder as those of model `name`; nothing where the engine cannot read the model (pretrained, or
/// with subwords), has no weights, or more than `most_bytes` of them.
std::vector<EngineFile> engine_files(const std::string& folder, const std::string& name, int64_t most_bytes);

/// The same under the folder's own name. A model that the engine cannot read is an error.
std::vector<EngineFile> model_files(const std::string& folder, int64_t most_bytes);

/// The block of a page that holds the engine and these files. It is unpacked when a bench first asks something.
std::string engine_block(const std::vector<EngineFile>& files);

/// The explorer as one file.
std::string explorer_file(const std::vector<EngineFile>& files);

/// A report with the explorer inside: buttons that open its benches are put before the end of its header, and links to
/// benches lead there. All of it is packed, so that it costs nothing until a bench is opened.
std::string with_benches(std::string report, const std::vector<EngineFile>& files);

/// Takes explorer and engine out of such a report, and returns the files that the engine had; nothing if the report has
/// no engine. Its buttons then open explore.html, which must be beside it.
std::vector<EngineFile> take_engine_out(std::string& report);

}  // namespace qkv::serve
