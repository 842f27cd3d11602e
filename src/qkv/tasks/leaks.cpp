// Every test runs the model on an input and on a changed one, and compares the scores that must not differ.
#include "qkv/tasks/leaks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/core/check.h"
#include "qkv/data/shuffle.h"
#include "qkv/tasks/translation/task.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kGroup = 8;    // sentences per batch
constexpr int64_t kPlaces = 16;  // positions per sentence after which tokens are changed
constexpr int64_t kPaddings[] = {1, 3, 8};

struct Row {
  std::vector<int32_t> source, target_in;
  int64_t length = 0;   // of the source without padding
  int64_t outputs = 0;  // without padding
};

struct Batch {
  Ids source, lengths, target_in;
};

Batch batch_of(std::span<const Row> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<int32_t> source, target, lengths;
  for (const Row& row : rows) {
    source.insert(source.end(), row.source.begin(), row.source.end());
    target.insert(target.end(), row.target_in.begin(), row.target_in.end());
    lengths.push_back(static_cast<int32_t>(row.length));
  }
  return {Ids({count, std::ssize(rows[0].source)}, source), Ids({count}, lengths),
          Ids({count, std::ssize(rows[0].target_in)}, target)};
}

class Tests {
 public:
  Tests(const LeakSubject& subject, std::span<const IdPair> pairs, const LeakOptions& options)
      : subject_(subject), options_(options), rng_(Rng(options.seed).at("leaks")) {
    for (const IdPair& pair : pairs) rows_.push_back(row_of(pair));
  }

  LeakReport run() {
    LeakReport report;
    report.results = {later_tokens(), padding(), batch_mates(), cache()};
    controls(report);
    return report;
  }

 private:
  Row row_of(const IdPair& pair) const {
    check(!pair.source.empty() && !pair.target.empty(), "[leaks] a sentence pair has an empty side");
    Row row{pair.source, {subject_.begin}, std::ssize(pair.source), std::ssize(pair.target)};
    row.target_in.insert(row.target_in.end(), pair.target.begin(), pair.target.end() - 1);
    return padded(row, subject_.least_source, 0);
  }
  // Padded with <pad> to at least this many source and target tokens.
  Row padded(Row row, int64_t source, int64_t target) const {
    row.source.resize(std::max(row.source.size(), static_cast<size_t>(source)), subject_.source_pad);
    row.target_in.resize(std::max(row.target_in.size(), static_cast<size_t>(target)), subject_.target_pad);
    return row;
  }
  bool fits(int64_t tokens) const { return subject_.most_positions == 0 || tokens <= subject_.most_positions; }
  uint64_t below(int64_t n) { return rng_.below(static_cast<uint64_t>(n), drawn_++); }
  int32_t any(int64_t vocabulary) { return static_cast<int32_t>(below(vocabulary)); }
  // A different id.
  int32_t other(int32_t id, int64_t vocabulary) {
    return vocabulary < 2 ? id
                          : static_cast<int32_t>((id + 1 + static_cast<int64_t>(below(vocabulary - 1))) % vocabulary);
  }
  Tensor logits(std::span<const Row> rows) const {
    const Batch b = batch_of(rows);
    const Tensor out = subject_.logits(b.source, b.lengths, b.target_in);
    const Shape expected{b.target_in.size(0), b.target_in.size(1), subject_.target_vocabulary};
    check(out.shape() == expected, "[leaks] scores have shape ", out.shape(), ", expected ", expected);
    return out;
  }
  Tensor logits(const Row& row) const { return logits(std::span(&row, 1)); }

  // Compares the V scores at output `position` of a pair before and after a change; differences are divided by `unit`.
  void compare(LeakResult& result, const float* before, const float* after, int64_t pair, int64_t position,
               double unit = 1) const {
    for (int64_t v = 0; v < subject_.target_vocabulary; ++v) {
      const double difference = before[v] == after[v] ? 0 : std::abs(static_cast<double>(after[v]) - before[v]) / unit;
      if (difference <= result.largest || std::isnan(result.largest)) continue;  // false for a NaN difference
      result.largest = difference;
      result.pair = pair;
      result.position = position;
    }
    result.compared += subject_.target_vocabulary;
  }
  // Compares the first `outputs` positions of row `a` of x and row `b` of y.
  void compare_rows(LeakResult& result, const Tensor& x, int64_t a, const Tensor& y, int64_t b, int64_t outputs,
                    int64_t pair) const {
    ++result.tried;
    const int64_t V = subject_.target_vocabulary;
    for (int64_t t = 0; t < outputs; ++t)
      compare(result, x.ptr() + (a * x.size(1) + t) * V, y.ptr() + (b * y.size(1) + t) * V, pair, t);
  }
  static LeakResult judged(LeakResult result, double tolerance = 0) {
    result.passed = result.tried > 0 && result.largest <= tolerance;
    return result;
  }

  // Changes all tokens after a position: the outputs up to it must not change.
  LeakResult later_tokens() {
    LeakResult result{Leak::later_tokens};
    for (size_t p = 0; p < rows_.size(); ++p) {
      const Row& row = rows_[p];
      const Tensor before = logits(row);
      const int64_t places = row.outputs - 1, tried = std::min(places, kPlaces);
      for (int64_t i = 0; i < tried; ++i) {
        const int64_t t = i * places / tried;
        Row changed = row;
        for (int64_t later = t + 1; later < row.outputs; ++later) {
          int32_t& id = changed.target_in[static_cast<size_t>(later)];
          id = other(id, subject_.target_vocabulary);
        }
        compare_rows(result, before, 0, logits(changed), 0, t + 1, static_cast<int64_t>(p));
      }
    }
    return judged(result);
  }

  // Adds padding after source and target, of <pad> and of random ids, and puts random ids into the existing padding.
  LeakResult padding() {
    LeakResult result{Leak::padding};
    for (size_t p = 0; p < rows_.size(); ++p) {
      const Row& row = rows_[p];
      const auto pair = static_cast<int64_t>(p);
      const Tensor before = logits(row);
      const auto try_row = [&](const Row& changed) {
        if (fits(std::ssize(changed.source)) && fits(std::ssize(changed.target_in)))
          compare_rows(result, before, 0, logits(changed), 0, row.outputs, pair);
      };
      if (std::ssize(row.source) > row.length) try_row(scribbled(row));
      for (const int64_t more : kPaddings) {
        const Row source = padded(row, std::ssize(row.source) + more, 0),
                  target = padded(row, 0, std::ssize(row.target_in) + more);
        for (const Row& changed : {source, target}) {
          try_row(changed);
          try_row(scribbled(changed));
        }
      }
    }
    return judged(result);
  }
  // Random ids instead of padding.
  Row scribbled(Row row) {
    for (auto i = static_cast<size_t>(row.length); i < row.source.size(); ++i)
      row.source[i] = any(subject_.source_vocabulary);
    for (auto i = static_cast<size_t>(row.outputs); i < row.target_in.size(); ++i)
      row.target_in[i] = any(subject_.target_vocabulary);
    return row;
  }

  // Rows of one batch, padded to the same size: up to kGroup pairs, starting at `first`.
  std::vector<Row> group(size_t first) const {
    std::vector<Row> out(rows_.begin() + static_cast<std::ptrdiff_t>(first),
                         rows_.begin() + static_cast<std::ptrdiff_t>(std::min(first + kGroup, rows_.size())));
    int64_t source = 0, target = 0;
    for (const Row& row : out) {
      source = std::max(source, std::ssize(row.source));
      target = std::max(target, std::ssize(row.target_in));
    }
    for (Row& row : out) row = padded(row, source, target);
    return out;
  }
  Row random_mate(const Row& like) {
    Row mate = like;
    for (int32_t& id : mate.source) id = any(subject_.source_vocabulary);
    for (int32_t& id : mate.target_in) id = any(subject_.target_vocabulary);
    mate.length = 1 + static_cast<int64_t>(below(std::ssize(mate.source)));
    return mate;
  }

  // Compares a row alone with the same row, equally padded, in a batch: in order, shuffled, and among random rows.
  LeakResult batch_mates() {
    LeakResult result{Leak::batch_mates};
    for (size_t first = 0; first < rows_.size(); first += kGroup) {
      const std::vector<Row> rows = group(first);
      std::vector<Tensor> alone;
      for (const Row& row : rows) alone.push_back(logits(row));
      for (uint64_t round = 0; round < 3; ++round) {
        std::vector<int64_t> order = shuffled(std::ssize(rows), rng_.at("order").at(first).at(round));
        if (round == 0) std::sort(order.begin(), order.end());
        std::vector<Row> mixed;
        for (const int64_t r : order) mixed.push_back(rows[static_cast<size_t>(r)]);
        const Tensor together = logits(mixed);
        for (size_t i = 0; i < order.size(); ++i) {
          const auto r = static_cast<size_t>(order[i]);
          compare_rows(result, alone[r], 0, together, static_cast<int64_t>(i), rows[r].outputs,
                       static_cast<int64_t>(first + r));
        }
      }
      for (size_t r = 0; r < rows.size(); ++r) {
        const size_t place = r % 4;
        std::vector<Row> strangers;
        for (size_t i = 0; i < 4; ++i) strangers.push_back(i == place ? rows[r] : random_mate(rows[r]));
        compare_rows(result, alone[r], 0, logits(strangers), static_cast<int64_t>(place), rows[r].outputs,
                     static_cast<int64_t>(first + r));
      }
    }
    return judged(result);
  }

  // Compares decoding one token at a time, while rows are moved, repeated and dropped half-way, with one full pass.
  LeakResult cache() {
    LeakResult result{Leak::cache};
    const int64_t V = subject_.target_vocabulary;
    const auto decoder = subject_.decoder();
    for (size_t first = 0; first < rows_.size(); first += kGroup) {
      const std::vector<Row> rows = group(first);
      const Tensor whole = logits(rows);
      const Batch b = batch_of(rows);
      const int64_t steps = b.target_in.size(1);
      decoder->start(b.source, b.lengths);
      std::vector<int32_t> holds(rows.size());  // the index in `rows` of each row of the decoder
      for (size_t r = 0; r < rows.size(); ++r) holds[r] = static_cast<int32_t>(r);
      for (int64_t t = 0; t < steps; ++t) {
        if (t == (steps + 1) / 2) holds = moved(*decoder, holds);
        Ids tokens = Ids::empty({std::ssize(holds)});
        for (size_t i = 0; i < holds.size(); ++i)
          tokens.mutable_ptr()[i] = rows[static_cast<size_t>(holds[i])].target_in[static_cast<size_t>(t)];
        const Tensor scores = decoder->step(tokens);
        check(scores.shape() == Shape({std::ssize(holds), V}), "[leaks] a step gave scores ", scores.shape(), " for ",
              holds.size(), " rows");
        for (size_t i = 0; i < holds.size(); ++i) {
          const int64_t r = holds[i];
          if (t >= rows[static_cast<size_t>(r)].outputs) continue;
          const float* want = whole.ptr() + (r * steps + t) * V;
          double unit = 1;
          for (int64_t v = 0; v < V; ++v) unit = std::max(unit, std::abs(static_cast<double>(want[v])));
          ++result.tried;
          compare(result, want, scores.ptr() + static_cast<int64_t>(i) * V, static_cast<int64_t>(first) + r, t, unit);
        }
      }
    }
    return judged(result, options_.cache_tolerance);
  }
  // Reversed, with the first row repeated and, if there are three or more, without the last.
  static std::vector<int32_t> moved(SourceStepModel& decoder, const std::vector<int32_t>& holds) {
    std::vector<int32_t> take, out;
    for (size_t i = holds.size(); i-- > (holds.size() > 2 ? 1u : 0u);) take.push_back(static_cast<int32_t>(i));
    take.push_back(take.front());
    decoder.select(take);
    for (const int32_t i : take) out.push_back(holds[static_cast<size_t>(i)]);
    return out;
  }

  void controls(LeakReport& report) {
    for (const Row& row : rows_) {
      const Tensor before = logits(row);
      Row source = row, target = row;
      source.source[0] = other(row.source[0], subject_.source_vocabulary);
      target.target_in[0] = other(row.target_in[0], subject_.target_vocabulary);
      for (const Row* changed : {&source, &target}) {
        if (changed == &source && subject_.source_vocabulary < 2) continue;  // it reads no source
        LeakResult difference{Leak::later_tokens};
        compare_rows(difference, before, 0, logits(*changed), 0, row.outputs, 0);
        ++report.controls;
        report.noticed += difference.largest > 0;
      }
    }
  }

  const LeakSubject& subject_;
  LeakOptions options_;
  Rng rng_;
  uint64_t drawn_ = 0;
  std::vector<Row> rows_;
};

}  // namespace

bool LeakReport::passed() const {
  return noticed > 0 && std::all_of(results.begin(), results.end(), [](const LeakResult& r) { return r.passed; });
}

LeakReport leaks(const LeakSubject& subject, std::span<const IdPair> pairs, const LeakOptions& options) {
  check(!pairs.empty(), "[leaks] there is no sentence pair to try");
  const TapePause pause;
  return Tests(subject, pairs, options).run();
}

LeakSubject leak_subject(const Translator& translator) {
  const TranslationModel& model = translator.model();
  const Tokenizers& tokenizers = translator.tokenizers();
  return {.logits =
              [&model](const Ids& source, const Ids& lengths, const Ids& target_in) {
                return model.output()(model.features(source, lengths, target_in, Run{}));
              },
          .decoder = [&model] { return model.decoder(); },
          .source_vocabulary = tokenizers.source.size(),
          .target_vocabulary = tokenizers.target.size(),
          .source_pad = tokenizers.source.pad(),
          .target_pad = tokenizers.target.pad(),
          .begin = tokenizers.target.bos(),
          .least_source = source_steps(translator.config()),
          .most_positions = model.facts().longest_input.value_or(0)};
}

std::vector<IdPair> random_pairs(const Translator& translator, int64_t count, const Rng& rng) {
  const Tokenizers& tokenizers = translator.tokenizers();
  const int64_t positions = leak_subject(translator).most_positions;
  const int64_t most = positions > 0 ? std::clamp<int64_t>(positions - 1, 1, 12) : 12;
  uint64_t drawn = 0;
  const auto sentence = [&](const Tokenizer& tokenizer) {
    std::vector<int32_t> out(1 + rng.below(static_cast<uint64_t>(most), drawn++));
    for (int32_t& id : out) {
      do id = static_cast<int32_t>(rng.below(static_cast<uint64_t>(tokenizer.size()), drawn++));
      while (tokenizer.size() > 4 && (id == tokenizer.pad() || id == tokenizer.bos() || id == tokenizer.eos()));
    }
    out.push_back(tokenizer.eos());
    return out;
  };
  std::vector<IdPair> out;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> source = sentence(tokenizers.source);
    out.push_back({std::move(source), sentence(tokenizers.target)});
  }
  return out;
}

}  // namespace qkv
