// qkv classify: the likeliest classes of images; for labelled images also how many answers are right.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/command.h"
#include "qkv/cli/cut_texts.h"
#include "qkv/cli/text_input.h"
#include "qkv/cli/unknown_words.h"
#include "qkv/data/text.h"
#include "qkv/plot/save.h"
#include "qkv/report/classifications.h"
#include "qkv/report/text_vectors.h"
#include "qkv/tasks/kinds.h"

namespace qkv::cli {
namespace {

class Classify : public Command {
 public:
  std::string name() const override { return "classify"; }
  Text summary() const override { return tr("says what is on images, or what a text is, with a trained model"); }
  std::string example() const override {
    return "qkv classify --model runs/vit some/star/3.png some/wave/5.png\n"
           "  qkv classify --model runs/vit --labels digits-labels-idx1-ubyte digits-images-idx3-ubyte";
  }

  void bind(Options& options) override {
    options.option("--model DIR", tr("the folder that qkv train wrote, or a pretrained one"), model_);
    options.option("--text TEXT", tr("models of texts: a text; may be repeated"), texts_);
    options.option("--top N", tr("classes to print for each image, likeliest first"), top_, 1, 100'000);
    options.option("--labels FILE",
                   tr("labels of an IDX file: print accuracy and confusion instead of every answer (default: the file "
                      "beside it, \"labels\" instead of \"images\", if there is one)"),
                   labels_);
    options.flag("--each", tr("with labels: print every answer too"), each_);
    options.option("--confusion FILE", tr("with labels: draw the confusion of classes to .svg, .png or .txt"),
                   confusion_);
    options.flag("--resize", tr("stretch images to the model's size"), resize_);
    options.flag("--json", tr("print one JSON object per image, and one for accuracy and confusion"), json_);
    options.positionals("IMAGE",
                        tr("PNG files, or IDX files of many images, gzipped or not; for models of texts, files of "
                           "texts, one per line (-: standard input)"),
                        files_);
  }

  int run(const Global& global) override {
    if (model_.empty())
      throw UsageError(tr("the option --model DIR is missing"), tr("qkv train --preset vit makes one in runs/vit"));
    if (labels_ && files_.size() != 1)
      throw UsageError(tr("--labels goes with one IDX file, got {count} files", "count"_a = files_.size()));
    if (confusion_) check_figure_path(*confusion_);
    if (run_task(model_) == TaskKind::encoding) return classify_texts(global);
    if (!texts_.empty()) throw UsageError(tr("--text is for models that classify texts"));
    if (files_.empty()) throw UsageError(tr("give at least one image: a PNG or IDX file"));
    const Classifier classifier(model_);
    note_unfinished(model_, global);
    for (const std::string& file : files_) answer(classifier, file, global);
    return 0;
  }

 private:
  // A pretrained encoder with a head of classes.
  int classify_texts(const Global& global) const {
    if (labels_ || confusion_ || each_ || resize_)
      throw UsageError(tr("--labels, --each, --confusion and --resize are for images; this model classifies texts"));
    const SentenceEncoder encoder(model_);
    require(encoder.model().classes.has_value(),
            "{folder}: has no head of classes, such as BertForSequenceClassification; qkv embed makes vectors with it",
            "folder"_a = model_);
    std::vector<std::string> texts = texts_;
    for (const std::string& text : texts_) check_utf8(text, tr("the text"));
    for (const std::string& file : texts_.empty() && files_.empty() ? std::vector<std::string>{"-"} : files_)
      for (std::string& line : read_text_lines(file)) texts.push_back(std::move(line));
    TextVectors sizes;
    const Tensor probabilities = encoder.classify(texts, encoder.defaults(), sizes);
    note_cut(sizes.left_out, global);
    for (const auto& one : report::classifications(encoder, texts, probabilities, top_))
      fmt::print("{}\n", json_ ? report::to_json(one) : report::to_text(one));
    return 0;
  }

  void answer(const Classifier& classifier, const std::string& file, const Global& global) const {
    const ImageSet set = read_image_file(file, labels_.value_or(""));
    require(labels_ || !confusion_ || !set.labels.empty(), "{file}: has no labels; --confusion needs them",
            "file"_a = file);
    classifier.check_size(set, file, resize_ ? OtherSizes::stretched : OtherSizes::refused);
    const auto classes = std::ssize(classifier.facts().classes);
    for (const int32_t label : set.labels)
      require(label < classes, "{file}: has the label {label}, but the model has {classes} classes, from 0",
              "file"_a = file, "label"_a = label, "classes"_a = classes);
    const Tensor probabilities = classifier.probabilities(set);
    if (set.labels.empty() || each_)
      for (const auto& one : report::classifications(classifier, set, probabilities, file, top_))
        fmt::print("{}\n", json_ ? report::to_json(one) : report::to_text(one));
    if (set.labels.empty()) return;
    const report::Confusion confusion = report::confusion_of(classifier, set, probabilities);
    fmt::print("{}", json_ ? report::to_json(confusion) + "\n" : report::to_text(confusion, global.language));
    if (confusion_) save(report::figure_of(confusion), *confusion_, global.language);
  }

  std::string model_;
  std::optional<std::string> labels_, confusion_;
  std::vector<std::string> files_, texts_;
  int64_t top_ = 5;
  bool each_ = false, resize_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> classify_command() { return std::make_unique<Classify>(); }

}  // namespace qkv::cli
