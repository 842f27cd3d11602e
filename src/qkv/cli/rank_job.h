// A command whose work several processes share: how they find each other, and how their failures become one message.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "qkv/cli/command.h"
#include "qkv/ranks/ranks.h"

namespace qkv::cli {

enum class Distributed { automatic, mpi, none };
constexpr std::array<std::string_view, 3> names(Distributed) { return {"auto", "mpi", "none"}; }

/// The options --distributed and --rank-timeout.
struct RankChoice {
  Distributed distributed = Distributed::automatic;
  double timeout = 120;
  void bind(Options& options);
  /// Whether this process was started as a rank of a job.
  bool in_job() const;
};

/// Whether this process is a rank other than 0 of a job that was started with one command line: rank 0 says what is
/// wrong with that, and is given the time.
bool left_to_rank_0();

/// Calls work(ranks, global): with null if this process is alone. In a job, ranks other than 0 print nothing, and an
/// error on any rank ends all of them with one message. Ranks of different programs or kernels are refused.
int on_ranks(const RankChoice& choice, const Global& global,
             const std::function<int(Ranks* ranks, const Global& global)>& work);

/// Throws, naming the rank, unless all ranks have the same text; `what` it is: "the setting training.rate is 0.1".
void agree(
    Ranks& ranks, const std::string& own,
    const std::function<Text(const std::string& theirs, const std::string& first, const Text& rank)>& difference);

}  // namespace qkv::cli
