// The explorer and the tour as a folder of files for any web host, or for a USB stick.
#pragma once

#include <string>
#include <vector>

#include "qkv/serve/page_file.h"

namespace qkv::serve {

struct SiteOptions {
  std::string folder;
  std::string report;             // the index.html of a tour, with or without an engine inside; empty: none
  std::vector<EngineFile> files;  // what the engine has besides: models
};

/// Writes index.html, explore.html, tour.html if there is a report, and what a browser needs to keep them for later.
/// Models and data that the report has inside are used where `files` has no models. Returns the names of the files.
std::vector<std::string> write_site(const SiteOptions& options);

/// Whether a report has models inside.
bool has_models(const std::string& report);

}  // namespace qkv::serve
