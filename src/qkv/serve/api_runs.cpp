// GET /runs/ID/metrics: the lines of a training so far, and the attention that it saved on the way.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "qkv/io/npz.h"
#include "qkv/serve/call.h"

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRows = 5000, kMostMaps = 200;

// "step-000120.npz" or "epoch-3.npz" -> its number.
int64_t number_in(const std::string& name) {
  const size_t first = name.find_first_of("0123456789");
  return first == name.npos ? 0 : std::atoll(name.c_str() + first);
}

// The first sentence's map: the mean over the heads of the last layer. A snapshot is (written, layers and heads, read),
// as decoding keeps it; columns of padding at the end are cut off.
Json first_map(const std::string& path, int64_t heads) {
  const NpzFile file(path);
  const std::vector<std::string> all = file.names();
  if (std::ranges::find(all, "sentence_0") == all.end()) return {};
  const Tensor x = file.array("sentence_0").to_tensor(verbatim(path));
  if (x.rank() != 3 || x.numel() == 0 || x.size(0) > 64 || x.size(2) > 64) return {};
  const int64_t rows = x.size(0), maps = x.size(1), columns = x.size(2);
  heads = std::clamp<int64_t>(heads, 1, maps);
  std::vector<std::vector<double>> mean(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns)));
  size_t used = 1;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double& sum = mean[static_cast<size_t>(i)][static_cast<size_t>(j)];
      for (int64_t h = maps - heads; h < maps; ++h) sum += static_cast<double>(x.ptr()[(i * maps + h) * columns + j]);
      sum /= static_cast<double>(heads);
      if (sum > 0) used = std::max(used, static_cast<size_t>(j) + 1);
    }
  for (auto& row : mean) row.resize(used);
  return mean;
}

}  // namespace

Json run_metrics(const Call& call, const std::string& id) {
  const ShelfModel model = call.api.shelf().model(id);
  Json rows = Json::array();
  std::ifstream lines(model.folder + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    Json row = Json::parse(line, nullptr, false);
    if (row.is_object()) rows.push_back(std::move(row));
  }
  // The last ones, if there are too many, and it says so.
  Json out = {{"id", id}, {"left_out", 0}};
  if (rows.size() > kMostRows) {
    out["left_out"] = rows.size() - kMostRows;
    rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(kMostRows));
  }
  out["rows"] = std::move(rows);
  std::vector<fs::path> files;
  std::error_code no;
  for (fs::directory_iterator it(model.folder + "/attention", no), end; !no && it != end; it.increment(no))
    if (it->path().extension() == ".npz") files.push_back(it->path());
  std::sort(files.begin(), files.end());
  out["attention"] = Json::array();
  int64_t heads = 1;
  if (model.run && model.run->config.task() == TaskKind::translation)
    for (const MapGroup& group : std::get<TranslationConfig>(model.run->config.of).facts().maps)
      if (group.name == "cross") heads = group.heads;
  for (size_t i = files.size() > kMostMaps ? files.size() - kMostMaps : 0; i < files.size(); ++i) {
    call.go_on();
    if (Json map = first_map(files[i].string(), heads); !map.is_null())
      out["attention"].push_back({{"epoch", number_in(files[i].filename().string())}, {"map", std::move(map)}});
  }
  out["pinned"] = nullptr;
  out["command"] = command_line({"plot", model.folder + "/metrics.jsonl", "-o", "curve.svg"});
  return out;
}

}  // namespace qkv::serve
