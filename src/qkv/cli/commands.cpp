// The list of commands: a new one gets its line here.
#include "qkv/cli/command.h"
#include "qkv/serve/page.h"

namespace qkv::cli {

std::unique_ptr<Command> align_command();
std::unique_ptr<Command> ask_command();
std::unique_ptr<Command> attend_command();
std::unique_ptr<Command> bench_command();
std::unique_ptr<Command> check_command();
std::unique_ptr<Command> classify_command();
std::unique_ptr<Command> data_command();
std::unique_ptr<Command> embed_command();
std::unique_ptr<Command> export_command();
std::unique_ptr<Command> generate_command();
std::unique_ptr<Command> info_command();
std::unique_ptr<Command> inspect_command();
std::unique_ptr<Command> lab_command();
std::unique_ptr<Command> plot_command();
std::unique_ptr<Command> prune_command();
std::unique_ptr<Command> regress_command();
std::unique_ptr<Command> score_command();
std::unique_ptr<Command> serve_command();
std::unique_ptr<Command> site_command();
std::unique_ptr<Command> tour_command();
std::unique_ptr<Command> train_command();
std::unique_ptr<Command> translate_command();

Commands all_commands() {
  Commands commands;
  commands.push_back(tour_command());
  commands.push_back(lab_command());
  commands.push_back(serve_command());
  if (serve::page_engine()) commands.push_back(site_command());
  commands.push_back(train_command());
  commands.push_back(translate_command());
  commands.push_back(classify_command());
  commands.push_back(generate_command());
  commands.push_back(embed_command());
  commands.push_back(inspect_command());
  commands.push_back(prune_command());
  commands.push_back(export_command());
  commands.push_back(score_command());
  commands.push_back(align_command());
  commands.push_back(check_command());
  commands.push_back(attend_command());
  commands.push_back(regress_command());
  commands.push_back(ask_command());
  commands.push_back(plot_command());
  commands.push_back(data_command());
  commands.push_back(bench_command());
  commands.push_back(info_command());
  return commands;
}

}  // namespace qkv::cli
