// Counting, ordering and storing the tokens of a vocabulary.
#include "qkv/data/vocabulary.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/core/counts.h"
#include "qkv/data/corpus.h"
#include "qkv/io/atomic_file.h"

namespace qkv {
namespace {

bool is_special(std::string_view token) {
  return token == kUnknown || token == kPadding || token == kBegin || token == kEnd;
}

struct Counted {
  std::string_view token;
  int64_t count;
};

}  // namespace

// Our own hash table, because counting a corpus is mostly waiting for memory: tokens are stored close together and a
// slot is eight bytes.
struct TokenCounts::State {
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = UINT32_MAX;  // index in counted; UINT32_MAX: free
  };
  std::vector<Slot> slots = std::vector<Slot>(1024);  // a power of two, at most half full
  std::vector<Counted> counted;                       // by first appearance; views of the chunks
  std::vector<std::unique_ptr<char[]>> chunks;
  size_t left = 0;  // free bytes of the last chunk
  char* next = nullptr;

  std::string_view keep(std::string_view token) {
    if (token.size() > left) {
      left = std::max<size_t>(token.size(), size_t{1} << 16);
      next = chunks.emplace_back(std::make_unique<char[]>(left)).get();
    }
    std::copy(token.begin(), token.end(), next);
    const std::string_view kept(next, token.size());
    next += token.size();
    left -= token.size();
    return kept;
  }

  // The slot of the token, or the free slot for it.
  Slot& find(std::string_view token, uint32_t hash) {
    for (size_t at = hash & (slots.size() - 1);; at = (at + 1) & (slots.size() - 1)) {
      Slot& slot = slots[at];
      if (slot.number == UINT32_MAX || (slot.hash == hash && counted[slot.number].token == token)) return slot;
    }
  }

  void grow() {
    const std::vector<Slot> old = std::exchange(slots, std::vector<Slot>(slots.size() * 2));
    for (const Slot& slot : old)
      if (slot.number != UINT32_MAX) find(counted[slot.number].token, slot.hash) = slot;
  }
};

TokenCounts::TokenCounts() : state_(std::make_unique<State>()) {}
TokenCounts::~TokenCounts() = default;
TokenCounts::TokenCounts(TokenCounts&&) noexcept = default;
TokenCounts& TokenCounts::operator=(TokenCounts&&) noexcept = default;

size_t TokenCounts::add(std::string_view token, int64_t times) {
  State& s = *state_;
  const uint32_t hash = static_cast<uint32_t>(std::hash<std::string_view>{}(token));
  State::Slot* slot = &s.find(token, hash);
  if (slot->number == UINT32_MAX) {
    check(s.counted.size() < INT32_MAX, "[vocabulary] more than ", INT32_MAX, " distinct tokens");
    if (2 * (s.counted.size() + 1) > s.slots.size()) {
      s.grow();
      slot = &s.find(token, hash);
    }
    *slot = {hash, static_cast<uint32_t>(s.counted.size())};
    s.counted.push_back({s.keep(token), 0});
  }
  s.counted[slot->number].count += times;
  return slot->number;
}

size_t TokenCounts::distinct() const { return state_->counted.size(); }
std::string_view TokenCounts::token(size_t number) const { return state_->counted[number].token; }

struct Vocabulary::State {
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, int32_t> index;  // views of tokens
  int32_t unk = -1, pad = -1, bos = -1, eos = -1;
};

Vocabulary::Vocabulary()
    : Vocabulary({std::string(kUnknown), std::string(kPadding), std::string(kBegin), std::string(kEnd)}) {}

// The tokens are distinct: both callers guarantee it.
Vocabulary::Vocabulary(std::vector<std::string> tokens) {
  check(tokens.size() <= static_cast<size_t>(std::numeric_limits<int32_t>::max()),
        "[vocabulary] too many tokens: ", tokens.size());
  const auto state = std::make_shared<State>();
  state->tokens = std::move(tokens);
  state->index.reserve(state->tokens.size());
  for (size_t i = 0; i < state->tokens.size(); ++i) state->index.emplace(state->tokens[i], static_cast<int32_t>(i));
  const auto find = [&](std::string_view token) {
    const auto at = state->index.find(token);
    return at == state->index.end() ? -1 : at->second;
  };
  state->unk = find(kUnknown);
  state->pad = find(kPadding);
  state->bos = find(kBegin);
  state->eos = find(kEnd);
  state_ = state;
}

Vocabulary Vocabulary::build(const std::vector<std::vector<std::string>>& lines, int64_t min_count, Edition edition) {
  TokenCounts counts;
  for (const auto& line : lines)
    for (const std::string& token : line) counts.add(token);
  return build(counts, min_count, edition);
}

Vocabulary Vocabulary::build(const TokenCounts& counts, int64_t min_count, Edition edition) {
  check(min_count >= 1, "[vocabulary] the minimum count is ", min_count, ", expected at least 1");
  std::vector<Counted> kept;
  for (const Counted& c : counts.state_->counted)
    if (c.count >= min_count && (edition == Edition::en || !is_special(c.token))) kept.push_back(c);
  std::vector<std::string> tokens;
  if (edition == Edition::zh) {
    std::stable_sort(kept.begin(), kept.end(), [](const Counted& a, const Counted& b) { return a.count > b.count; });
    for (const std::string_view special : {kUnknown, kPadding, kBegin, kEnd}) tokens.emplace_back(special);
    for (const Counted& c : kept) tokens.emplace_back(c.token);
  } else {
    for (const Counted& c : kept) tokens.emplace_back(c.token);
    for (const std::string_view special : {kUnknown, kPadding, kEnd}) tokens.emplace_back(special);
    std::sort(tokens.begin(), tokens.end());  // UTF-8 bytes sort like code points
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  }
  return Vocabulary(std::move(tokens));
}

int32_t Vocabulary::id(std::string_view token) const {
  const auto at = state_->index.find(token);
  return at == state_->index.end() ? state_->unk : at->second;
}

const std::string& Vocabulary::token(int32_t id) const {
  check(id >= 0 && id < size(), "[vocabulary] no token has the number ", id, ", expected 0 to ", size() - 1);
  return state_->tokens[static_cast<size_t>(id)];
}

int32_t Vocabulary::size() const { return static_cast<int32_t>(state_->tokens.size()); }
bool Vocabulary::contains(std::string_view token) const { return state_->index.contains(token); }
int32_t Vocabulary::unk() const { return state_->unk; }
int32_t Vocabulary::pad() const { return state_->pad; }
int32_t Vocabulary::bos() const { return state_->bos; }
int32_t Vocabulary::eos() const { return state_->eos; }
bool Vocabulary::operator==(const Vocabulary& other) const { return state_->tokens == other.state_->tokens; }

void Vocabulary::save(const std::string& path) const {
  std::string text;
  for (const std::string& token : state_->tokens) {
    require(token.find_first_of("\r\n") == std::string::npos,
            "{path}: token {token} contains a line end and cannot be written", "path"_a = path, "token"_a = id(token));
    text += token;
    text += '\n';
  }
  write_file(path, text);
}

Vocabulary Vocabulary::load(const std::string& path) {
  std::vector<std::string> tokens = read_lines(path);
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto [first, is_new] = seen.try_emplace(tokens[i], i);
    require(is_new, "{path}: line {line}: the token \"{token}\" is already in line {first}", "path"_a = path,
            "line"_a = i + 1, "token"_a = tokens[i], "first"_a = first->second + 1);
  }
  const bool sorted = std::is_sorted(tokens.begin(), tokens.end());  // the English edition's source side has no <bos>
  for (const std::string_view special : {kUnknown, kPadding, kBegin, kEnd})
    require(seen.contains(special) || (special == kBegin && sorted),
            "{path}: the special token {special} is missing from its {lines}", "path"_a = path, "special"_a = special,
            "lines"_a = line_count(tokens.size()));
  seen.clear();
  return Vocabulary(std::move(tokens));
}

}  // namespace qkv
