// qkv data attention: queries, keys and values of six words to try qkv attend on, and weights for its additive score.
#include <cstdio>

#include "qkv/cli/data.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/npy.h"
#include "qkv/io/safetensors.h"

namespace qkv::cli {
namespace {

// the cat slept because it purred: a key says what a word is (article, noun, verb, other), a query what it looks for, a
// value what it adds (animal, action, grammar). "it" is half a noun and looks for one: it finds the cat. Each query
// ends in a 1 and each key in a 0: this is the bias of the additive score, so that a unit is on only if the key is what
// the query looks for.
void write_arrays(const std::string& folder) {
  const Tensor q({6, 5}, {8, 0, 0, 0, 1,  //
                          8, 0, 0, 0, 1,  // cat: an article
                          0, 8, 0, 0, 1,  // slept: a noun
                          0, 0, 8, 0, 1,  // because: a verb
                          0, 8, 0, 0, 1,  // it: a noun
                          0, 8, 0, 0, 1});
  const Tensor k({6, 5}, {1, 0,   0, 0, 0,  //
                          0, 1,   0, 0, 0,  //
                          0, 0,   1, 0, 0,  //
                          0, 0,   0, 1, 0,  //
                          0, 0.5, 0, 0, 0,  //
                          0, 0,   1, 0, 0});
  const Tensor v({6, 3}, {0, 0, 1,  //
                          1, 0, 0,  //
                          0, 1, 0,  //
                          0, 0, 1,  //
                          0, 0, 0,  //
                          0, 1, 0});
  Tensor to_query = zeros({4, 5}), to_key = zeros({4, 5});
  for (int64_t unit = 0; unit < 4; ++unit) {
    to_query.mutable_ptr()[unit * 5 + unit] = 4.0f / 8;
    to_query.mutable_ptr()[unit * 5 + 4] = -6;
    to_key.mutable_ptr()[unit * 5 + unit] = 4;
  }
  make_folder(folder);
  write_npy(folder + "/q.npy", q);
  write_npy(folder + "/k.npy", k);
  write_npy(folder + "/v.npy", v);
  write_safetensors(folder + "/additive.safetensors",
                    std::map<std::string, Tensor>{{"W_q", to_query}, {"W_k", to_key}, {"w_v", full({4}, 2)}});
}

class AttentionData : public Command {
 public:
  std::string name() const override { return "data attention"; }
  Text summary() const override { return tr("queries, keys and values of six words to try qkv attend on"); }
  std::string example() const override { return "qkv data attention -o attention"; }
  void bind(Options& o) override { o.option("-o,--output DIR", tr("the folder to write to"), folder_); }
  int run(const Global& global) override {
    write_arrays(folder_);
    global.say(
        tr("{folder}: q.npy (6, 5), k.npy (6, 5), v.npy (6, 3) for the words \"the cat slept because it purred\"; "
           "additive.safetensors",
           "folder"_a = folder_));
    return 0;
  }

 private:
  std::string folder_ = "attention";
};

}  // namespace

std::unique_ptr<Command> data_attention() { return std::make_unique<AttentionData>(); }

}  // namespace qkv::cli
