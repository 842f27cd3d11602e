// A language model of characters: trained on a verse or on a file, saved, loaded, and asked to continue a prompt.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qkv/qkv.h"

using namespace qkv;

// Characters as numbers, and back.
struct Alphabet {
  std::string characters;
  explicit Alphabet(std::string text) : characters(std::move(text)) {
    std::sort(characters.begin(), characters.end());
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  }
  std::vector<int32_t> ids(const std::string& text) const {
    std::vector<int32_t> out;
    for (const char c : text) out.push_back(int32_t(characters.find(c)));
    return out;
  }
  std::string text(const std::vector<int32_t>& ids) const {
    std::string out;
    for (const int32_t id : ids) out += characters.at(size_t(id));
    return out;
  }
};

// Pieces of the text, and the same pieces one character on.
struct Pieces {
  Ids x, y;
  Pieces(const std::vector<int32_t>& text, int64_t rows, int64_t length, const Rng& rng)
      : x(Ids::empty({rows, length})), y(Ids::empty({rows, length})) {
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t* from = text.data() + rng.below(text.size() - size_t(length), uint64_t(i));
      std::copy_n(from, length, x.mutable_ptr() + i * length);
      std::copy_n(from + 1, length, y.mutable_ptr() + i * length);
    }
  }
};

int main(int argc, char** argv) {
  std::string text =
      "Peter Piper picked a peck of pickled peppers; a peck of pickled peppers Peter Piper picked. "
      "If Peter Piper picked a peck of pickled peppers, where's the peck of pickled peppers Peter Piper picked?\n";
  if (argc > 1) {
    std::ifstream in(argv[1], std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  const Alphabet alphabet(text);
  const auto ids = alphabet.ids(text);
  const auto cut = argc > 1 ? ids.end() - std::ssize(ids) / 10 : ids.end();  // of a file, a tenth is held out
  const std::vector<int32_t> train(ids.begin(), cut), held = argc > 1 ? std::vector(cut, ids.end()) : ids;
  const TransformerConfig config{
      .hidden = 64, .ffn = 256, .layers = 2, .norm = NormPlace::pre, .positions = PositionKind::rotary};
  const auto fresh = [&](uint64_t seed) {
    return TransformerDecoder(config, std::ssize(alphabet.characters), Cross::no, Rng(seed));
  };
  TransformerDecoder model = fresh(1);
  Adam adam = adamw(0.1f);
  const auto loss = [&](int64_t step, const Run& run) {
    const Pieces p(train, 16, 48, Rng(2).at(uint64_t(step)));
    return cross_entropy(model.logits(p.x, {}, run), p.y);
  };
  const auto evaluate = [&](const TransformerDecoder& decoder) {
    const Pieces p(held, 32, 48, Rng(3));
    return cross_entropy(decoder.logits(p.x, {}, {}), p.y).item();
  };
  const auto report = [&](const Progress& p) {
    std::printf("after step %ld: %.1f nats per character\n", long(p.step), evaluate(model));
  };
  fit(model, adam, {.epochs = 2, .steps = 200, .rate = cosine_rate(5e-3f, 200, 20), .clip = 1, .on_epoch = report},
      loss);

  const std::string file = std::filesystem::temp_directory_path() / "qkv_language_model.safetensors";
  save(model, file, {{"alphabet", alphabet.characters}});
  TransformerDecoder loaded = fresh(99);
  const Alphabet known(load(loaded, file)["alphabet"]);
  std::filesystem::remove(file);
  std::printf("the same after loading: %s\n", evaluate(loaded) == evaluate(model) ? "yes" : "no");
  const SampleOptions options{.temperature = argc > 1 ? 0.8 : 0, .max_length = 60, .end = kNoEnd};
  std::printf("If Pe|%s\n", known.text(generate(loaded, known.ids("If Pe"), options).front()).c_str());

  const std::string seen = text.substr(0, 24);
  std::vector<std::string> labels;
  for (const char c : seen) labels.emplace_back(1, c);
  const Tensor map = attention_of(loaded, Ids({1, 24}, known.ids(seen)), Memory{}).at("1.self").head(0, 0);
  std::printf("no character sees a later one: %s\n", map.at({0, 23}) == 0 ? "yes" : "no");
  if (argc > 2)
    save(heatmaps(map, "keys", "queries", {"layer 2, head 1"}, {.x_tokens = labels, .y_tokens = labels}), argv[2]);
}
