// The catalogues of the program: for each language but English, its sentences by their English.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/language.h"

namespace qkv {

struct CatalogueEntry {
  std::string english, translation;
  bool fuzzy = false;
};

/// The entries of a file in gettext's .po format, without its header; throws Error with the line of what it cannot
/// read. Contexts and plural forms are not used here and refused.
std::vector<CatalogueEntry> read_po(std::string_view file);

/// Makes a catalogue known, before anything is said in its language. It is read when the first sentence is asked for.
void add_catalogue(Language language, std::string po);

/// The sentence in that language, or in English where the catalogue does not have it.
std::string_view translation(std::string_view english, Language language);

}  // namespace qkv
