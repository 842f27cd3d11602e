// The book's trainings for a page: their settings, their data, and what the model writes meanwhile.
#include "qkv/serve/training_desk.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "qkv/data/en_fr.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::serve {
namespace {

constexpr size_t kMostTexts = 16;
constexpr int64_t kMostMilliseconds = 5000, kBuiltInPairs = 601, kMostShown = 64;

// What a page may set: nothing that names a file, and no model that its memory could not hold.
struct Limit {
  const char* setting;
  double most;  // 0: a word or a truth value
};
constexpr Limit kMaySet[] = {{"model.hidden", 256},        {"model.layers", 6},         {"model.heads", 16},
                             {"model.ffn", 1024},          {"model.dropout", 1},        {"model.positions", 0},
                             {"model.attention", 0},       {"model.pre_norm", 0},       {"model.norm", 0},
                             {"training.epochs", 1000},    {"training.rate", 10},       {"training.seed", 1e15},
                             {"training.batch_rows", 512}, {"training.average_last", 1}};

void apply(Settings& settings, const Json& wanted) {
  require(wanted.is_object(), "settings: expected an object of names and values");
  std::vector<Setting::Assign> all;
  for (auto entry = wanted.begin(); entry != wanted.end(); ++entry) {
    const std::string& name = entry.key();
    const Json& value = entry.value();
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
  if (!a.defined() || a.size(0) > kMostShown || a.size(2) > kMostShown) return out;
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

// Keeps the losses, and ends a slice when its time is over.
class TrainingDesk::Watcher : public Observer {
 public:
  using Clock = std::chrono::steady_clock;
  void step(const Progress& p) override {
    now = p;
    if (Clock::now() >= end || (asked && asked->load())) stop = true;
  }
  void epoch(const Progress& p) override { losses.push_back(p.epoch_loss); }

  Progress now;
  std::vector<double> losses;  // of the epochs
  Clock::time_point end;
  const std::atomic<bool>* asked = nullptr;
  std::atomic<bool> stop = false;
};

// A run folder of the shelf. After a slice its training is interrupted, and the next one resumes it: both as for a run
// that is stopped and started again, so the slices make the same bits as one run.
struct TrainingDesk::Session {
  Session(const TranslationConfig& config, const std::string& folder) : run(config, folder, ExistingRun::discard) {}

  TranslationRun run;
  Watcher watcher;
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
  make_folder(folder_);
  const std::string given = folder_ + "/book.tsv";
  const bool own = !in.has("pairs") && !in.flag("built_in", false) && std::filesystem::exists(given);
  const std::string pairs = in.has("pairs") ? in.text("pairs", "") : own ? "" : built_in_pairs();
  const std::string file = own ? given : folder_ + "/pairs.tsv";
  if (!own) {
    check_utf8(pairs, tr("pairs"));
    write_file(file, pairs);
  }
  const std::string name = "trained-" + std::to_string(started_ + 1);
  session_ = std::make_unique<Session>(config_of(in, file), shelf_.folder() + "/" + name);
  ++started_;
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
  return {{"name", name},
          {"pairs", run.training_pairs()},
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
  if (!s.finished) {
    s.watcher.end = Watcher::Clock::now() + std::chrono::milliseconds(milliseconds);
    s.watcher.asked = call.stop;
    s.watcher.stop = false;
    Observer* const watchers[] = {&s.watcher};
    s.finished = !s.run.train(watchers, &s.watcher.stop).interrupted;
    if (s.finished) shelf_.scan();
  }
  const Progress& p = s.watcher.now;
  Json losses = Json::array();
  for (size_t i = seen; i < s.watcher.losses.size(); ++i) losses.push_back(s.watcher.losses[i]);
  return {{"step", p.step},       {"steps", p.steps}, {"epoch", s.watcher.losses.size()}, {"losses", losses},
          {"loss", p.epoch_loss}, {"rate", p.rate},   {"per_second", p.per_second()},     {"done", s.finished}};
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
  return {{"sentences", out}, {"epoch", s.watcher.losses.size()}};
}

Json train_start(const Call& call) { return call.api.desk()->start(call); }
Json train_advance(const Call& call) { return call.api.desk()->advance(call); }
Json train_look(const Call& call) { return call.api.desk()->look(call); }
Json train_stop(const Call& call) {
  call.api.desk()->stop();
  return Json::object();
}

}  // namespace qkv::serve
