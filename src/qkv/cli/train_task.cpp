// What the trainings of all tasks say.
#include "qkv/cli/train_task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/core/counts.h"
#include "qkv/labs/wrap.h"

namespace qkv::cli {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  if (!word.empty() && word.find_first_not_of(kSafe) == word.npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void say_line(const Text& text, const Global& global) {
  const std::string line = text.in(global.language);
  fmt::print(stderr, "{}\n", ::isatty(STDERR_FILENO) ? labs::wrapped(line, terminal_columns(STDERR_FILENO), 2) : line);
}

void say_loaded(const TrainingStart* start, const Global& global) {
  if (!start) return;
  say_line(tr("starts from {folder} ({model})", "folder"_a = start->folder, "model"_a = start->model), global);
  const auto shown = [](const std::vector<std::string>& names) {
    constexpr size_t kShown = 5;
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + std::min(std::ssize(names), std::ptrdiff_t{kShown}));
    return names.size() <= kShown ? verbatim(listed(first))
                                  : tr("{names} and {more} more, listed in {file}", "names"_a = listed(first),
                                       "more"_a = names.size() - kShown, "file"_a = kStartFile);
  };
  if (const auto& names = start->weights.fresh; !names.empty())
    global.note(tr("new, with random values: {names}", "names"_a = shown(names)));
  if (const auto& names = start->weights.dropped; !names.empty())
    global.note(tr("dropped: {names}", "names"_a = shown(names)));
}

void note_warmup(const TrainingConfig& training, int64_t updates, const Global& global) {
  if (training.schedule != ScheduleKind::warmup || updates >= training.warmup) return;
  global.note(
      tr("training.warmup is {warmup}, but the whole training has {updates}: the rate will not reach "
         "training.rate",
         "warmup"_a = training.warmup, "updates"_a = update_count(static_cast<uint64_t>(updates))));
}

}  // namespace qkv::cli
