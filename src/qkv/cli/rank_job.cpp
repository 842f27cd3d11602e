// Finds the launcher in the environment, loads the plug-in, and compares the programs of all ranks.
#include "qkv/cli/rank_job.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

#include "qkv/cli/interrupt.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/parallel.h"
#include "qkv/core/version.h"
#include "qkv/kernels/target.h"

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

fs::path program_path() { return fs::read_symlink("/proc/self/exe"); }

// A number that differs between builds: FNV-1a over the words of the program's file.
std::string build_of_program() {
  std::ifstream file(program_path(), std::ios::binary);
  std::vector<uint64_t> words(1 << 16);
  uint64_t hash = 0xcbf29ce484222325;
  while (file) {
    std::ranges::fill(words, 0);
    file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof(uint64_t)));
    const auto count = (static_cast<size_t>(file.gcount()) + 7) / 8;
    for (size_t i = 0; i < count; ++i) hash = (hash ^ words[i]) * 0x100000001b3;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(hash ^ (hash >> 32)));
  return digits;
}

std::unique_ptr<Link> load_link() {
  const std::string path = (program_path().parent_path() / QKV_MPI_PLUGIN).lexically_normal();
  if (!fs::exists(path))
    throw Error(
        tr("this build of qkv cannot run as a distributed job: {path} is missing", "path"_a = path),
        tr("./qkv --with-mpi info installs Open MPI and builds it; --distributed none runs every process alone"));
  // Open MPI loads parts of itself that look for its symbols.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* start = library ? ::dlsym(library, "qkv_mpi_start") : nullptr;
  if (!start) {
    const char* reason = ::dlerror();
    throw Error(tr("cannot load {path}: {reason}", "path"_a = path, "reason"_a = reason ? reason : "?"));
  }
  std::string reason;
  Link* link = reinterpret_cast<LinkStart>(start)(reason);
  require(link, "cannot join the MPI job: {reason}", "reason"_a = reason);
  return std::unique_ptr<Link>(link);
}

// Processes on one machine that may all use every CPU share them.
void share_cpus(const Ranks& ranks, const Global& global) {
  if (global.threads_given) return;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < online) return;  // bound to some
  int here = 0;
  for (int r = 0; r < ranks.size(); ++r) here += ranks.host(r) == ranks.host(ranks.rank());
  set_threads(std::max(1, online / std::max(1, here)));
}

void check_programs(Ranks& ranks) {
  agree(ranks, text(version(), " (build ", build_of_program(), ")"),
        [](const std::string& theirs, const std::string& first, const Text& rank) {
          return tr("{rank} runs qkv {theirs}, but rank 0 runs {first}: all must run the same program", "rank"_a = rank,
                    "theirs"_a = theirs, "first"_a = first);
        });
  agree(ranks, kernels::rounding_target(), [](const std::string& theirs, const std::string& first, const Text& rank) {
    return tr(
        "{rank} uses the kernels {theirs}, but rank 0 uses {first}: their results would differ; --kernel-target "
        "NAME selects one that all CPUs have",
        "rank"_a = rank, "theirs"_a = theirs, "first"_a = first);
  });
}

// The first rank that ends makes mpirun end all of them: the one that has something to report gets the time. The signal
// of mpirun ends the sleep.
void wait_for_the_reporter() { ::sleep(2); }

// mpirun waits for hosts that it cannot reach any more, for many minutes. If it has not ended a few seconds after a job
// was lost, a process that outlives this rank kills it: a second Ctrl-C, which it offers instead, makes it crash.
void end_launcher_later() {
  const pid_t launcher = ::getppid();
  std::string name;
  std::ifstream(text("/proc/", launcher, "/comm")) >> name;
  if (name != "mpirun" && name != "mpiexec" && name != "orterun") return;
  if (::fork() != 0) return;
  ::setsid();
  ::close_range(0, ~0u, 0);  // nobody waits for the end of what it could print
  ::sleep(3);
  ::kill(launcher, SIGKILL);
  ::_exit(0);
}

// Reports an error of this rank unless a lower one has reported the same.
int failed(Ranks& ranks, const Text& message, const Text& hint, int code, Language language) {
  if (ranks.fail(message.in(Language::en)))
    print_error(ranks.rank() == 0 ? message
                                  : tr("{rank}: {message}", "rank"_a = ranks.name(ranks.rank()), "message"_a = message),
                hint, language);
  else
    wait_for_the_reporter();
  return code;
}

}  // namespace

void RankChoice::bind(Options& options) {
  options.option("--distributed WAY",
                 tr("share the work with the other processes of an MPI job; auto: if mpirun or srun started this one"),
                 distributed);
  options.option("--rank-timeout S", tr("seconds after which a process that does not answer ends the job"), timeout, 1,
                 1e6);
}

bool RankChoice::in_job() const {
  const bool launched = std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK");
  const auto several = [](const char* variable) {
    const char* number = std::getenv(variable);
    return number && std::atoi(number) > 1;
  };
  // Each process would train alone, and all of them in one folder.
  if (!launched && distributed != Distributed::none) {
    if (std::getenv("SLURM_STEP_ID") && several("SLURM_STEP_NUM_TASKS"))
      throw UsageError(tr("srun started several processes, but without PMIx they cannot find each other"),
                       tr("srun --mpi=pmix ...; --distributed none runs every process alone"));
    if (several("PMI_SIZE"))
      throw UsageError(tr("these processes were started by the mpirun of another MPI than Open MPI"),
                       tr("mpirun --version names it; --distributed none runs every process alone"));
  }
  if (distributed == Distributed::mpi && !launched)
    throw UsageError(tr("--distributed mpi: this process was not started by mpirun or srun"),
                     tr("mpirun -n 4 qkv train ... starts four; docs/distributed.md explains it"));
  return launched && distributed != Distributed::none;
}

bool left_to_rank_0() {
  const char *rank = std::getenv("OMPI_COMM_WORLD_RANK"), *programs = std::getenv("OMPI_NUM_APP_CTX");
  if (rank && (!programs || std::atoi(programs) != 1)) return false;
  if (!rank) rank = std::getenv("SLURM_STEP_ID") ? std::getenv("SLURM_PROCID") : nullptr;
  if (!rank || std::atoi(rank) == 0) return false;
  wait_for_the_reporter();
  return true;
}

void agree(
    Ranks& ranks, const std::string& own,
    const std::function<Text(const std::string& theirs, const std::string& first, const Text& rank)>& difference) {
  const std::vector<std::string> all = ranks.gather(own);
  for (int r = 1; r < ranks.size(); ++r)
    if (all[static_cast<size_t>(r)] != all[0])
      throw Error(difference(all[static_cast<size_t>(r)], all[0], ranks.name(r)));
}

int on_ranks(const RankChoice& choice, const Global& global,
             const std::function<int(Ranks* ranks, const Global& global)>& work) {
  if (!choice.in_job()) return work(nullptr, global);
  const auto lost = [language = global.language](const Text& message, bool say) {
    if (say) {
      print_error(message, {}, language);
      end_launcher_later();
    }
    ::_exit(1);
  };
  // When a rank ends, mpirun asks the others to end as well and kills them a second later: time for the one that has to
  // say what happened.
  const InterruptScope scope;
  Ranks ranks(load_link(), {.timeout = choice.timeout, .lost = lost});
  Global own = global;
  if (ranks.rank() != 0) {
    own.quiet = true;
    own.log_format = LogFormat::none;
  }
  try {
    check_programs(ranks);
    share_cpus(ranks, global);
    own.threads = threads();
    const int code = work(&ranks, own);
    ranks.set_place(tr("the end"));
    ranks.gather("done");
    return code;
  } catch (const RankFailed&) {
    wait_for_the_reporter();
    return 1;
  } catch (const UsageError& error) {
    return failed(ranks, error.message(), error.hint(), 2, global.language);
  } catch (const Error& error) {
    return failed(ranks, error.message(), error.hint(), 1, global.language);
  } catch (const std::bad_alloc&) {
    return failed(ranks, tr("out of memory"), {}, 1, global.language);
  } catch (const std::exception& error) {
    return failed(ranks, verbatim(error.what()), {}, 1, global.language);
  }
}

}  // namespace qkv::cli
