// Finding labs, and what to say when there is none.
#include "qkv/cli/named_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "qkv/core/suggest.h"
#include "qkv/data/translation.h"

namespace qkv::cli {
namespace {

// Sections before the chapter that its labs treat: texts and vocabularies, sequence to sequence, beam search.
const std::map<std::string, std::string> kEarlier = {
    {"9.5", "10.4"}, {"9.6", "10.4"}, {"9.7", "10.4"}, {"9.8", "10.4"}};

// What the English edition has and the labs do not yet.
struct Planned {
  std::vector<std::string> names;
  Text what, hint;
};
const std::vector<Planned>& planned() {
  static const std::vector<Planned> all = {
      {{"11.8", "10.8", "vit", "vision", "vision-transformer"},
       {"the Vision Transformer is planned", "视觉 Transformer 尚在计划中"},
       {"lab 10.7 cuts an image into patches (exercise 10.7.6)", "实验 10.7 把图像切成小块（练习 10.7.6）"}},
      {{"11.9", "10.9", "pretraining", "pre-training", "bert", "gpt", "t5"},
       {"large-scale pretraining is planned", "大规模预训练尚在计划中"},
       {"lab 10.7 trains a small language model (exercise 10.7.3)", "实验 10.7 训练一个小语言模型（练习 10.7.3）"}}};
  return all;
}

// "10.2" of "10.2.4"; else the same.
std::string section_of(const std::string& name) {
  const size_t first = name.find('.'), second = first == name.npos ? first : name.find('.', first + 1);
  const bool numbers = std::all_of(name.begin(), name.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return numbers && second != name.npos ? name.substr(0, second) : name;
}

const labs::Lab& named_lab(const std::string& name, const Global& global) {
  if (const labs::Lab* lab = labs::find_lab(name)) return *lab;
  const std::string section = section_of(name);
  const auto earlier = kEarlier.find(section);
  if (const labs::Lab* lab = labs::find_lab(earlier == kEarlier.end() ? section : earlier->second)) {
    global.note({text(name, " is in lab ", lab->section), text(name, " 在实验 ", lab->section, " 中")});
    return *lab;
  }
  for (const Planned& p : planned())
    if (std::find(p.names.begin(), p.names.end(), section) != p.names.end())
      throw UsageError(
          Text{text("there is no lab \"", name, "\" yet: ", p.what.en), text("还没有实验“", name, "”：", p.what.zh)}.in(
              global.language),
          p.hint.in(global.language));
  std::vector<std::string> known;
  for (const labs::Lab& lab : labs::all_labs()) known.push_back(lab.name);
  const std::string near = did_you_mean(nearest_word(name, known), global.language);
  throw UsageError("there is no lab \"" + name + "\"", near.empty() ? "qkv lab lists them" : near);
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
    throw UsageError(labs.size() == 1 ? fmt::format("--data: lab {} takes no data", labs[0]->name)
                                      : "--data: none of these labs takes data",
                     "labs 10.4 and 10.7 do");
  load_book_zh(data);
}

}  // namespace qkv::cli
