// Finds labs by name, and reports unknown names.
#include "qkv/cli/named_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "qkv/core/suggest.h"
#include "qkv/data/translation.h"

namespace qkv::cli {
namespace {

// Other names of sections, and earlier ones that the labs of this chapter cover: texts and vocabularies, sequence to
// sequence, beam search.
const std::map<std::string, std::string> kElsewhere = {
    {"9.5", "10.4"},         {"9.6", "10.4"},          {"9.7", "10.4"},       {"9.8", "10.4"},   {"10.9", "11.9"},
    {"pretraining", "11.9"}, {"pre-training", "11.9"}, {"induction", "11.9"}, {"bert", "11.9"},  {"gpt", "11.9"},
    {"t5", "11.9"},          {"10.8", "11.8"},         {"vit", "11.8"},       {"vision", "11.8"}};

// "10.2.4" -> "10.2"; other names are unchanged.
std::string section_of(const std::string& name) {
  const size_t first = name.find('.'), second = first == name.npos ? first : name.find('.', first + 1);
  const bool numbers = std::all_of(name.begin(), name.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return numbers && second != name.npos ? name.substr(0, second) : name;
}

const labs::Lab& named_lab(const std::string& name, const Global& global) {
  if (const labs::Lab* lab = labs::find_lab(name)) return *lab;
  if (const labs::Exercise* exercise = labs::find_exercise(name)) {
    const labs::Lab& lab = *labs::find_lab(exercise->lab);
    global.note(tr("{name} is in lab {section}", "name"_a = name, "section"_a = lab.section));
    return lab;
  }
  const std::string section = section_of(name);
  const auto earlier = kElsewhere.find(section);
  if (const labs::Lab* lab = labs::find_lab(earlier == kElsewhere.end() ? section : earlier->second)) {
    global.note(tr("{name} is in lab {section}", "name"_a = name, "section"_a = lab->section));
    return *lab;
  }
  std::vector<std::string> known;
  for (const labs::Lab& lab : labs::all_labs()) known.push_back(lab.name);
  const Text near = did_you_mean(name, known);
  throw UsageError(tr("there is no lab \"{name}\"", "name"_a = name),
                   near.empty() ? tr("qkv lab lists all labs") : near);
}

}  // namespace

std::vector<const labs::Lab*> named_labs(const std::vector<std::string>& names, const Global& global) {
  std::vector<const labs::Lab*> out;
  for (const std::string& name : names) {
    if (name != "all")
      out.push_back(&named_lab(name, global));
    else
      for (const labs::Lab& lab : labs::all_labs()) out.push_back(&lab);
  }
  return out;
}

void check_lab_data(const std::string& data, const std::vector<const labs::Lab*>& labs) {
  if (data.empty()) return;
  const bool takes = std::any_of(labs.begin(), labs.end(), [](const labs::Lab* lab) { return lab->takes_data; });
  if (!takes)
    throw UsageError(labs.size() == 1 ? tr("--data: lab {name} takes no data", "name"_a = labs[0]->name)
                                      : tr("--data: none of these labs takes data"),
                     tr("labs 10.4 and 10.7 do"));
  load_book_zh(data);
}

}  // namespace qkv::cli
