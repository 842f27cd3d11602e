// qkv serve: the explorer in the browser.
#include "qkv/serve/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "qkv/cli/command.h"
#include "qkv/cli/interrupt.h"

namespace qkv::cli {
namespace {

// The browser is a process of its own; if there is none, the address is on the screen anyway.
void open_browser(const std::string& address) {
  const pid_t child = ::fork();
  if (child != 0) return;
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(nothing, standard);
  ::execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

class Serve : public Command {
 public:
  std::string name() const override { return "serve"; }
  Text summary() const override { return tr("see attention in the browser, live, on your own models"); }
  std::string example() const override { return "qkv serve --models runs --open"; }

  void bind(Options& options) override {
    options.option("--models DIR", tr("the folder with the run folders of qkv train"), options_.models);
    options.set_default(options_.models);
    options.option("--port N", tr("the port (default: the first free one from {first} on)", "first"_a = first_), port_,
                   0, 65535);
    options.flag("--open", tr("open the page in the browser"), open_);
    options.option("--listen ADDRESS",
                   tr("an IPv4 address of this machine for other machines to use; requests then need the token that is "
                      "printed"),
                   options_.listen);
    options.flag("--no-training", tr("do not train a small model where there is no translation model"), idle_);
  }

  int run(const Global& global) override {
    if (port_) options_.port = static_cast<uint16_t>(*port_);
    options_.train = !idle_;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    options_.trainer = {program,         "--quiet", "train",    "--preset", "transformer",
                        "--corpus-size", "20000",   "--epochs", "4",        "-o"};
    const InterruptScope scope;
    serve::serve(options_, interrupted(), [&](const std::string& address) {
      fmt::print("{}\n", address);
      std::fflush(stdout);
      global.note(tr("Ctrl-C ends the server"));
      if (open_) open_browser(address);
    });
    return kInterrupted;
  }

 private:
  serve::ServeOptions options_;
  std::optional<int64_t> port_;
  int64_t first_ = serve::kFirstPort;
  bool open_ = false, idle_ = false;
};

}  // namespace

std::unique_ptr<Command> serve_command() { return std::make_unique<Serve>(); }

}  // namespace qkv::cli
