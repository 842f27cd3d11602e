// qkv ask: one request to the explorer's API, answered without a server.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/serve/api.h"
#include "qkv/serve/http.h"
#include "qkv/serve/server.h"

namespace qkv::cli {
namespace {

class Ask : public Command {
 public:
  std::string name() const override { return "ask"; }
  Text summary() const override { return tr("ask what the explorer's page asks, and print the answer as JSON"); }
  std::string example() const override {
    return R"(qkv ask positions '{"kind": "sinusoidal", "length": 8, "width": 4}')";
  }

  void bind(Options& options) override {
    options.positional("PATH", tr("what is asked, as in docs/api.md: cues, attend, runs/m1/metrics, ..."), path_);
    options.positionals("JSON", tr("the fields of the question, or - for standard input; without any it is a GET"),
                        body_);
    options.option("--models DIR", tr("the folder with the run folders of qkv train"), models_);
    options.set_default(models_);
  }

  int run(const Global& global) override {
    if (body_.size() > 1)
      throw UsageError(tr("one question at a time: {count} were given", "count"_a = body_.size()),
                       tr("put the JSON in single quotes"));
    serve::ModelShelf shelf(models_);
    shelf.scan();
    serve::EventHub events;
    serve::Api api(shelf, events);
    serve::ApiRequest request;
    const size_t mark = std::min(path_.find('?'), path_.size());
    request.path = path_.starts_with('/') ? path_.substr(0, mark) : "/api/v1/" + path_.substr(0, mark);
    if (mark < path_.size()) request.query = path_.substr(mark + 1);
    request.language = global.language;
    if (!body_.empty()) {
      request.method = "POST";
      request.body = body_[0] == "-" ? read_input() : body_[0];
    }
    const serve::ApiAnswer answer = api.answer(request);
    if (answer.status == 200) {
      fmt::print("{}\n", answer.json);
      return 0;
    }
    const auto problem = nlohmann::json::parse(answer.json);
    throw Error(verbatim(problem.at("error").get<std::string>()), verbatim(problem.value("hint", "")));
  }

 private:
  static std::string read_input() {
    std::string text;
    for (char c; text.size() <= serve::kMostBodyBytes && std::cin.get(c);) text += c;
    require(text.size() <= serve::kMostBodyBytes, "the question is longer than {most} bytes",
            "most"_a = serve::kMostBodyBytes);
    return text;
  }

  std::string path_, models_ = serve::ServeOptions{}.models;
  std::vector<std::string> body_;
};

}  // namespace

std::unique_ptr<Command> ask_command() { return std::make_unique<Ask>(); }

}  // namespace qkv::cli
