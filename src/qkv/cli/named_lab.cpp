// Finding a lab, and what to say when there is none.
#include "qkv/cli/named_lab.h"

#include "qkv/cli/command.h"
#include "qkv/core/suggest.h"

namespace qkv::cli {

const labs::Lab& named_lab(const std::string& name, Language language) {
  if (const labs::Lab* lab = labs::find_lab(name)) return *lab;
  std::vector<std::string> known;
  for (const labs::Lab& lab : labs::all_labs()) known.push_back(lab.name);
  const std::string near = did_you_mean(nearest_word(name, known), language);
  throw UsageError("there is no lab \"" + name + "\"", near.empty() ? "qkv lab lists them" : near);
}

}  // namespace qkv::cli
