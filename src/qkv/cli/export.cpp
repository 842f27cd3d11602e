// qkv export: writes a model as a folder that other programs load.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/core/numbers.h"
#include "qkv/tasks/pretrained/export.h"

namespace qkv::cli {
namespace {

class Export : public Command {
 public:
  std::string name() const override { return "export"; }
  Text summary() const override { return tr("writes a model as a folder that Hugging Face's transformers loads"); }
  std::string example() const override {
    return "qkv train --init opus-mt-zh-en --data pairs.tsv -o runs/tuned\n"
           "  qkv export --model runs/tuned -o opus-mt-tuned";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("a run that started from a pretrained folder, or such a folder"), model_);
    options.option("--format NAME", tr("hf: config.json, model.safetensors in float32, and the tokenizer's files"),
                   format_);
    options.option("-o,--output DIR", tr("the folder to write, which must not exist"), output_);
    options.flag("--json", tr("print one JSON object"), json_);
  }

  int run(const Global& global) override {
    if (model_.empty()) throw UsageError(tr("the option --model DIR is missing"));
    if (output_.empty()) throw UsageError(tr("the option -o DIR is missing"));
    const Exported done = export_model(model_, output_, format_);
    if (!done.left_out.empty())
      global.note(tr("not written, because qkv does not compute with it: {names}", "names"_a = listed(done.left_out)));
    if (json_)
      fmt::print("{}\n", nlohmann::ordered_json{{"folder", output_},
                                                {"architecture", name_of(done.architecture)},
                                                {"tensors", done.tensors},
                                                {"parameters", done.parameters}}
                             .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    else
      global.say(tr("{folder}: {architecture}, {tensors} tensors, {parameters} parameters in float32",
                    "folder"_a = output_, "architecture"_a = name_of(done.architecture), "tensors"_a = done.tensors,
                    "parameters"_a = grouped(static_cast<uint64_t>(done.parameters))));
    return 0;
  }

 private:
  std::string model_, output_;
  ExportFormat format_ = ExportFormat::hf;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> export_command() { return std::make_unique<Export>(); }

}  // namespace qkv::cli
