// Mutants of arrays, tables, weights and settings.
#include "mutator.h"
#include "qkv/io/csv.h"
#include "qkv/io/npy.h"
#include "qkv/io/npz.h"
#include "qkv/io/safetensors.h"
#include "qkv/tasks/translation/config.h"
#include "qkv/train/checkpoint.h"

using namespace qkv;
using namespace qkv_test;

namespace {

const std::vector<std::string> kJson = {
    "{", "}", "[", "]", "\"", "\"F32\"", "\"BF16\"", "\"shape\"", "\"data_offsets\"", "-1", "[[[[[[[[", "null", "1e5"};

std::string bytes_of(const TempFolder& folder, const std::string& name, const auto& write) {
  write(folder / name);
  return file_bytes(folder / name);
}

const Array kMatrix = Array::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), kLengths = Array::of<int32_t>({4}, {1, 2, 3, 4});

}  // namespace

TEST(Mutants, OfNpyAreReadOrRefused) {
  const TempFolder folder;
  Seeds seeds;
  for (const Array& array : {kMatrix, kLengths})
    seeds.files.push_back(bytes_of(folder, "s", [&](const auto& p) { write_npy(p, array); }));
  seeds.words = {"'<f8'", "'>f4'", "True", "(2, 3)", "(0,)", "(9223372036854775807,)", "()", "'shape'", "{", "}", "("};
  survives(seeds, folder / "x.npy", mutants(1000), [](const std::string& p) { read_npy(p); });
}

TEST(Mutants, OfNpzAreReadOrRefused) {
  const TempFolder folder;
  Seeds seeds;
  for (const Compression how : {Compression::stored, Compression::deflate})
    seeds.files.push_back(bytes_of(folder, "s", [&](const auto& p) {
      write_npz(p, {{"a", kMatrix}, {"b", kLengths}}, how);
    }));
  seeds.words = {"PK\1\2", "PK\3\4", "PK\5\6", "a.npy"};
  survives(seeds, folder / "x.npz", mutants(1000), [](const std::string& p) { read_npz(p); });
}

TEST(Mutants, OfSafetensorsAreReadOrRefused) {
  const TempFolder folder;
  const Seeds seeds{
      {bytes_of(
          folder, "s",
          [](const auto& p) {
            write_safetensors(p, std::map<std::string, Array>{{"w", kMatrix}, {"n", kLengths}}, {{"about", "text"}});
          })},
      kJson};
  survives(seeds, folder / "x.safetensors", mutants(1000), [](const std::string& p) {
    const SafetensorsFile file(p);
    for (const std::string& name : file.names())
      if (file.info(name).dtype) file.array(name);
  });
}

TEST(Mutants, OfCheckpointsAreReadOrRefused) {
  const TempFolder folder;
  Checkpoint checkpoint;
  checkpoint.tensors = {{"w", ones({2, 3})}, {"adam.m.w", zeros({2, 3})}};
  checkpoint.set("step", 7);
  const Seeds seeds{{bytes_of(folder, "s", [&](const auto& p) { save_checkpoint(p, checkpoint); })}, kJson};
  survives(seeds, folder / "x.safetensors", mutants(1000),
           [](const std::string& p) { (void)load_checkpoint(p).integer("step"); });
}

TEST(Mutants, OfCsvAreReadOrRefusedAndComeBack) {
  const TempFolder folder;
  const Seeds seeds{
      {"x,y,\"z, too\"\n1,2,3\n4.5,-6e3,7\n", "1;2\n3;4\n", "\xEF\xBB\xBFname\tvalue\r\n1\t2\r\nNaN\t3\r\n"},
      {"\"", "\"\"", ",", ";", "\t", "\r\n", "1e999", "-inf", "NA", "\xEF\xBB\xBF"}};
  survives(seeds, folder / "x.csv", mutants(1000), [&](const std::string& p) {
    csv_columns(p);
    const Table table = read_csv(p, {.missing = Missing::drop_row}).table;
    if (table.names.front() == "1") return;  // without a header, which comes back as numbers
    check(parse_csv(csv_text(table), "again").table.columns == table.columns, "the table did not come back");
  });
}

TEST(Mutants, OfSettingsAreReadOrRefused) {
  const TempFolder folder;
  TranslationConfig sound;
  const Seeds seeds{{sound.settings().dump(), "training:\n  epochs: 3\nmodel:\n  kind: transformer\n  heads: 2\n"},
                    {",",     "[",     "]",   "{",   "}",           "- ", "? ", ": ", "&a ", "*a",  "!!int ",
                     "---\n", "...\n", "|\n", ">\n", "%YAML 1.2\n", "'",  "\"", "#",  "\t",  "{},", "[a],"}};
  survives(seeds, folder / "x.yaml", mutants(1000), [](const std::string& p) {
    TranslationConfig config;
    config.read(p);
    config.check_model();
  });
}
