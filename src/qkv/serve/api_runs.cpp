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

// The mean over heads of the last layer of the first sentence.
Json first_map(const std::string& path) {
  const NpzFile file(path);
  const std::vector<std::string> all = file.names();
  if (all.empty()) return {};
  const auto cross = std::ranges::find_if(all, [](const std::string& n) { return n.find("sentence_0") != n.npos; });
  Tensor x = file.array(cross == all.end() ? all.front() : *cross).to_tensor(verbatim(path));
  if (x.rank() < 2) return {};
  const int64_t rows = x.size(-2), columns = x.size(-1), maps = x.numel() / std::max<int64_t>(rows * columns, 1);
  const int64_t heads = x.rank() >= 3 ? x.size(-3) : 1;
  if (rows * columns > 64 * 64 || maps < heads) return {};
  Tensor mean = zeros({rows, columns});
  for (int64_t h = maps - heads; h < maps; ++h)
    for (int64_t i = 0; i < rows * columns; ++i)
      mean.mutable_ptr()[i] += x.ptr()[h * rows * columns + i] / static_cast<float>(heads);
  return nested(mean);
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
  for (size_t i = files.size() > kMostMaps ? files.size() - kMostMaps : 0; i < files.size(); ++i) {
    call.go_on();
    if (Json map = first_map(files[i].string()); !map.is_null())
      out["attention"].push_back({{"step", number_in(files[i].filename().string())}, {"map", std::move(map)}});
  }
  out["pinned"] = nullptr;
  return out;
}

}  // namespace qkv::serve
