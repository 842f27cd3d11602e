// The book's trainings for a page: their settings, their data, and what the model writes meanwhile.
#include "qkv/serve/training_desk.h"

#include <algorithm>
#include <chrono>

#include "qkv/data/en_fr.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::serve {
namespace {

constexpr size_t kMostPairsBytes = size_t{2} << 20, kMostTexts = 16;
constexpr int64_t kMostMilliseconds = 5000, kBuiltInPairs = 601, kMostTokens = 64;

// What a page may set: nothing that names a file, and no model that its memory could not hold.
struct Limit {
  const char* setting;
  double most;  // 0: a word or a truth value
};
constexpr Limit kMaySet[] = {{"model.hidden", 256},      {"model.layers", 6},        {"model.heads", 16},
                             {"model.ffn", 1024},        {"model.dropout", 1},       {"model.positions", 0},
                             {"model.attention", 0},     {"model.pre_norm", 0},      {"model.norm", 0},
                             {"training.epochs", 1000},  {"training.rate", 10},      {"training.seed", 1e15},
                             {"training.batch_rows", 512}, {"training.average_last", 1}};

void apply(Settings& settings, const Json& wanted) {
  require(wanted.is_object(), "settings: expected an object of names and values");
  std::vector<Setting::Assign> all;
  for (const auto& [name, value] : wanted.items()) {
    const auto limit = std::ranges::find_if(kMaySet, [&](const Limit& l) { return name == l.setting; });
    if (limit == std::end(kMaySet) || !settings.has(name))
      refuse("settings: {name} cannot be set in the page", "name"_a = name);
    const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
    require(limit->most == 0 || (value.is_number() && value.get<double>() <= limit->most),
            "settings.{name}: got {value}, expected a number of at most {most}", "name"_a = name, "value"_a = word,
            "most"_a = limit->most);
    all.push_back(settings.find(name).parse(word, "settings." + name));
  }
  for (const Setting::Assign& one : all) one();
}

// The first sentences of the built-in corpus, as a file of pairs.
std::string built_in_pairs() {
  std::string out;
  int64_t count = 0;
  for (const AlignedPair& pair : en_fr_split(EnFrOptions{.size = 2 * kBuiltInPairs}).train)
    if (count++ < kBuiltInPairs) out += pair.source + "\t" + pair.target + "\n";
  return out;
}

class Losses : public Observer {
 public:
  void step(const Progress& p) override { now = p; }
  void epoch(const Progress& p) override { losses.push_back(p.epoch_loss); }
  Progress now;
  std::vector<double> losses;  // of the epochs
};

TranslationConfig config_of(const Fields& in, const std::string& pairs) {
  const std::string preset = in.text("preset", "d2l-transformer");
  if (!is_book_preset(preset)) refuse("preset: {name} is not a training for the page", "name"_a = preset);
  TranslationConfig config = translation_preset(preset);
  config.data.pairs = pairs;
  if (in.has("settings")) {
    Settings settings = config.settings();
    apply(settings, in.at("settings"));
  }
  return config;
}

Json maps_of(const Hypothesis& best, int64_t tokens) {
  const Tensor& a = best.attention;  // (steps, maps, source)
  Json out = Json::array();
  if (!a.defined() || a.size(0) > kMostTokens || a.size(2) > kMostTokens) return out;
  for (int64_t m = 0; m < a.size(1); ++m) {
    Json map = Json::array();
    for (int64_t i = 0; i < a.size(0); ++i) {
      const float* row = a.ptr() + (i * a.size(1) + m) * a.size(2);
      map.push_back(std::vector<float>(row, row + tokens));
    }
    out.push_back(std::move(map));
  }
  return out;
}

}  // namespace

struct TrainingDesk::Session {
  explicit Session(const TranslationConfig& config) : run(config, ""), steps(run, watchers) {}

  TranslationRun run;
  Losses losses;
  Observer* const watchers[1] = {&losses};
  TranslationRun::Steps steps;
  bool finished = false;
};

TrainingDesk::TrainingDesk(std::string folder, ModelShelf& shelf) : folder_(std::move(folder)), shelf_(shelf) {}
TrainingDesk::~TrainingDesk() = default;

TrainingDesk::Session& TrainingDesk::session() const {
  if (!session_) throw Refused(409, tr("no training has been started"));
  return *session_;
}

void TrainingDesk::stop() { session_.reset(); }

Json TrainingDesk::start(const Call& call) {
  const Fields in = call.fields();
  session_.reset();  // its memory is needed
  const std::string pairs = in.has("pairs") ? in.text("pairs") : built_in_pairs();
  require(pairs.size() <= kMostPairsBytes, "pairs: has {size} bytes, at most {most} are read", "size"_a = pairs.size(),
          "most"_a = kMostPairsBytes);
  check_utf8(pairs, tr("pairs"));
  make_folder(folder_);
  const std::string file = folder_ + "/pairs.tsv";
  write_file(file, pairs);
  session_ = std::make_unique<Session>(config_of(in, file));
  const TranslationRun& run = session_->run;
  // The book's four, if the data is the book's; otherwise some of the data.
  Json sentences = Json::array();
  const SentencePairs& text = run.text().train;
  const auto add = [&](const std::string& source, const std::string& target) {
    sentences.push_back({{"text", source}, {"reference", target}});
  };
  const bool book = std::ranges::find(text.source, book_sentences()[0].source) != text.source.end();
  for (size_t i = 0; i < 4; ++i)
    if (book)
      add(book_sentences()[i].source, book_sentences()[i].target);
    else
      add(text.source[i * text.source.size() / 4], text.target[i * text.source.size() / 4]);
  return {{"pairs", run.training_pairs()},
          {"parameters", run.model().parameters().count()},
          {"steps", run.updates()},
          {"epochs", run.config().training.epochs},
          {"loss_unit", run.config().book.loss == LossUnit::book ? "book" : "token"},
          {"heads", run.config().facts().maps.empty() ? 1 : run.config().facts().maps.front().heads},
          {"sentences", sentences}};
}

Json TrainingDesk::advance(const Call& call) {
  const Fields in = call.fields();
  Session& s = session();
  const auto milliseconds = in.whole("milliseconds", 1, kMostMilliseconds, 40);
  const auto seen = static_cast<size_t>(in.whole("from", 0, 1'000'000, 0));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!s.steps.done()) {
    call.go_on();
    s.steps.step();
    if (std::chrono::steady_clock::now() >= end) break;
  }
  if (s.steps.done() && !s.finished) {
    s.steps.finish();
    s.finished = true;
  }
  const Progress& p = s.losses.now;
  Json losses = Json::array();
  for (size_t i = seen; i < s.losses.losses.size(); ++i) losses.push_back(s.losses.losses[i]);
  return {{"step", p.step},
          {"steps", p.steps},
          {"epoch", s.losses.losses.size()},
          {"losses", losses},
          {"loss", p.epoch_loss},
          {"rate", p.rate},
          {"per_second", p.per_second()},
          {"done", s.finished}};
}

Json TrainingDesk::look(const Call& call) {
  const Fields in = call.fields();
  Session& s = session();
  const Translator translator(s.run.model(), s.run.tokenizers(), s.run.config());
  Json out = Json::array();
  for (const Fields& one : in.objects("sentences", kMostTexts)) {
    call.go_on();
    const std::vector<std::string> text = {one.text("text")};
    check_utf8(text[0], tr("the sentence"));
    TranslateOptions options = translator.defaults();
    options.keep_attention = true;
    options.name = tr("the sentence");
    options.first_line = 0;
    options.watch.stop = call.stop;
    const Translation t = translator.translate(text, options)[0];
    require(!t.hypotheses.empty(), "the sentence is empty");
    const Hypothesis& best = t.hypotheses[0];
    std::vector<int32_t> written = best.tokens;
    if (best.ended) written.push_back(s.run.tokenizers().target.eos());
    out.push_back({{"text", text[0]},
                   {"translation", translator.text(best, t.writing)},
                   {"source_tokens", s.run.tokenizers().source.tokens(t.source)},
                   {"output_tokens", s.run.tokenizers().target.tokens(written)},
                   {"maps", maps_of(best, std::ssize(t.source))}});
  }
  return {{"sentences", out}, {"epoch", s.losses.losses.size()}};
}

Json TrainingDesk::keep(const Call&) {
  Session& s = session();
  const std::string name = "trained-" + std::to_string(++kept_);
  s.run.save(shelf_.folder() + "/" + name);
  shelf_.scan();
  for (const ShelfModel& model : shelf_.models())
    if (model.name == name) return {{"model", model.id}, {"name", name}};
  refuse("the trained model cannot be read back");
}

namespace {

TrainingDesk& desk_of(const Call& call) {
  if (TrainingDesk* desk = call.api.desk()) return *desk;
  throw Refused(404, tr("trainings in the page are for files without a server"), tr("qkv train trains here"));
}

}  // namespace

Json train_start(const Call& call) { return desk_of(call).start(call); }
Json train_advance(const Call& call) { return desk_of(call).advance(call); }
Json train_look(const Call& call) { return desk_of(call).look(call); }
Json train_keep(const Call& call) { return desk_of(call).keep(call); }
Json train_stop(const Call& call) {
  desk_of(call).stop();
  return Json::object();
}

}  // namespace qkv::serve
