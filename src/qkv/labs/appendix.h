// The parts of a whole report that are not labs: the notes line by line, all exercises, words, books and papers.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::labs {

struct Appendix {
  std::string id;
  Text title;
  std::string html;  // in both languages
};
/// In the order of the report.
std::vector<Appendix> appendices();

/// A line, or a few that belong together, of one of the five notes that the project grew from.
struct NoteLine {
  const char* lines;    // "12", "21-27"
  Text says;            // in our words
  std::string command;  // that does it
  std::string anchor;   // where the report shows it
  std::string cpp;      // its name in the library
  Text erratum;         // what is wrong with it, or empty
};
struct Note {
  std::string name;
  Text about;
  std::vector<NoteLine> lines;
};
std::vector<Note> notes_in_prose();    // 000, 001, 002
std::vector<Note> notes_of_chapter();  // 003, 004

struct Term {
  std::string others;  // the words of the notes, and the symbol
  Text word, meaning;
  std::string anchor, cpp;
};
std::vector<Term> glossary();

struct Reference {
  const char *authors, *year, *title, *where;
  std::string anchor;  // where the report uses it
};
std::vector<Reference> bibliography();

}  // namespace qkv::labs
