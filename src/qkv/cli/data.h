// The data sets and tools of `qkv data`: each is a command with its own options.
#pragma once

#include "qkv/cli/command.h"

namespace qkv::cli {

std::unique_ptr<Command> data_en_fr();
std::unique_ptr<Command> data_nadaraya_watson();
std::unique_ptr<Command> data_waist();
std::unique_ptr<Command> data_measures();
std::unique_ptr<Command> data_attention();
std::unique_ptr<Command> data_vocab();
std::unique_ptr<Command> data_subwords();
std::unique_ptr<Command> data_split();
std::unique_ptr<Command> data_fra_eng();
std::unique_ptr<Command> data_pictures();

}  // namespace qkv::cli
