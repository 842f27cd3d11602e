// The options of `qkv data`, shared by the functions for its names; the table of names is in data.cpp.
#pragma once

#include "qkv/cli/command.h"
#include "qkv/data/notes.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"

namespace qkv::cli {

/// The command line. An absent option has no value: each name refuses options that belong to other names.
struct DataOptions {
  std::string name;
  std::vector<std::string> files;
  std::optional<std::string> output, alignments, from, split;
  std::optional<Edition> edition;
  std::optional<WordRule> rule;
  std::optional<SubwordKind> model;
  std::optional<int64_t> points, size, min_count, column, validation, test;
  std::optional<double> noise;
  bool lowercase = false, reverse = false;
};

// One function per name: writes the data and returns the exit code.
int data_notes(const DataOptions& options, const Global& global);      // nadaraya-watson, waist, measures
int data_vocab(const DataOptions& options, const Global& global);      // a vocabulary of the words of text files
int data_subwords(const DataOptions& options, const Global& global);   // a SentencePiece model of text files
int data_split(const DataOptions& options, const Global& global);      // pairs to train, validation and test
int data_en_fr(const DataOptions& options, const Global& global);      // the built-in corpus
int data_attention(const DataOptions& options, const Global& global);  // arrays for qkv attend
int data_fra_eng(const DataOptions& options, const Global& global);    // the book's file

}  // namespace qkv::cli
