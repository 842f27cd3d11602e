// qkv ask: one request to the explorer's API, answered without a server.
#include <fmt/format.h>

#include <filesystem>
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
    options.set_default(serve::ServeOptions{}.models);
  }

  int run(const Global& global) override {
    if (body_.size() > 1)
      throw UsageError(tr("one question at a time: {count} were given", "count"_a = body_.size()),
                       tr("put the JSON in single quotes"));
    const std::string folder = models_.value_or(serve::ServeOptions{}.models);
    require(!models_ || std::filesystem::is_directory(folder), "{folder}: no such folder", "folder"_a = folder);
    serve::ModelShelf shelf(folder);
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
    throw problem(answer);
  }

 private:
  // The one line of a refusal; OpenAI's form wraps it in an object.
  Error problem(const serve::ApiAnswer& answer) const {
    const auto json = nlohmann::json::parse(answer.json);
    const auto& error = json.at("error");
    const std::string line = (error.is_object() ? error.at("message") : error).get<std::string>();
    if (answer.status == 405)
      return Error(verbatim(line), body_.empty() ? tr("give its fields as JSON, or - for standard input")
                                                 : tr("it takes no fields: leave the JSON out"));
    return Error(verbatim(line), verbatim(json.value("hint", "")));
  }

  static std::string read_input() {
    std::string text;
    for (char c; text.size() <= serve::kMostBodyBytes && std::cin.get(c);) text += c;
    require(text.size() <= serve::kMostBodyBytes, "the question is longer than {most} bytes",
            "most"_a = serve::kMostBodyBytes);
    return text;
  }

  std::string path_;
  std::optional<std::string> models_;
  std::vector<std::string> body_;
};

}  // namespace

std::unique_ptr<Command> ask_command() { return std::make_unique<Ask>(); }

}  // namespace qkv::cli
