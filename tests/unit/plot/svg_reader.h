// A small reader of SVG text for tests: checks that tags balance and collects elements.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace qkv::drawings {

struct Element {
  std::string name, text;  // text: the text after the opening tag, entities decoded
  std::map<std::string, std::string> attributes;
  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
  bool has(const std::string& key, const std::string& value) const {
    return attributes.count(key) && attributes.at(key) == value;
  }
};

struct SvgText {
  std::string error;  // empty: well formed
  std::vector<Element> elements;

  std::vector<Element> named(const std::string& name) const {
    std::vector<Element> out;
    for (const Element& e : elements)
      if (e.name == name) out.push_back(e);
    return out;
  }
  std::vector<Element> of_class(const std::string& value) const {
    std::vector<Element> out;
    for (const Element& e : elements)
      if (e.has("class", value)) out.push_back(e);
    return out;
  }
  /// The number of <text> elements with exactly this text.
  int texts(const std::string& content) const {
    int count = 0;
    for (const Element& e : elements) count += e.name == "text" && e.text == content;
    return count;
  }
};

inline bool undo_entities(const std::string& raw, std::string& out) {
  const std::map<std::string, std::string> known = {{"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}};
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '<' || raw[i] == '>') return false;
    if (raw[i] != '&') {
      out += raw[i];
      continue;
    }
    const size_t end = raw.find(';', i);
    if (end == raw.npos || !known.count(raw.substr(i + 1, end - i - 1))) return false;
    out += known.at(raw.substr(i + 1, end - i - 1));
    i = end;
  }
  return true;
}

inline SvgText read_svg(const std::string& svg) {
  SvgText out;
  std::vector<std::string> open;
  size_t i = 0;
  const auto bad = [&](const std::string& why) {
    out.error = why + " at " + std::to_string(i) + ": " + svg.substr(i, 60);
  };
  while (i < svg.size() && out.error.empty()) {
    if (svg[i] != '<') {
      const size_t end = std::min(svg.find('<', i), svg.size());
      std::string text;
      if (!undo_entities(svg.substr(i, end - i), text)) bad("unescaped text");
      if (!out.elements.empty() && !open.empty() && out.elements.back().name == open.back())
        out.elements.back().text += text;
      i = end;
      continue;
    }
    const size_t end = svg.find('>', i);
    if (end == svg.npos) {
      bad("unclosed tag");
      break;
    }
    std::string tag = svg.substr(i + 1, end - i - 1);
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) {
        bad("unbalanced tag");
        break;
      }
      open.pop_back();
    } else {
      const bool single = tag.back() == '/';
      if (single) tag.pop_back();
      Element e;
      e.name = tag.substr(0, tag.find(' '));
      for (size_t at = tag.find(' '); at != tag.npos && at < tag.size();) {
        const size_t equals = tag.find("=\"", at), close = equals == tag.npos ? tag.npos : tag.find('"', equals + 2);
        if (close == tag.npos) {
          bad("bad attribute");
          break;
        }
        std::string value;
        if (!undo_entities(tag.substr(equals + 2, close - equals - 2), value)) bad("unescaped attribute");
        if (!e.attributes.emplace(tag.substr(at + 1, equals - at - 1), value).second) bad("repeated attribute");
        at = close + 1;
      }
      out.elements.push_back(e);
      if (!single) open.push_back(e.name);
    }
    i = end + 1;
  }
  if (out.error.empty() && !open.empty()) out.error = "not closed: " + open.back();
  return out;
}

/// The smallest type in a drawing, in pixels, on a page of this width: wider drawings are scaled down.
inline double smallest_type(const SvgText& s, double page) {
  const Element& whole = s.elements.at(0);
  double smallest = whole.number("font-size");
  for (const Element& e : s.elements)
    if (e.name == "text" && e.attributes.count("font-size")) smallest = std::min(smallest, e.number("font-size"));
  return smallest * std::min(1.0, page / whole.number("width"));
}

}  // namespace qkv::drawings
