// The explorer and the tour as a folder of files for any web host, or for a USB stick.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::serve {

struct SiteOptions {
  std::string folder;
  std::vector<std::string> models;        // run folders that the benches show
  std::string report;                     // the index.html of a tour; empty: none
  int64_t most_bytes = int64_t{8} << 20;  // of the weights of a model
};

/// Writes index.html, explore.html, tour.html if there is a report, and what a browser needs to keep them for later.
/// Returns the names of the files. A model that the engine cannot read is an error before anything is written.
std::vector<std::string> write_site(const SiteOptions& options);

}  // namespace qkv::serve
