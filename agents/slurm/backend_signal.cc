// Signals to the processes of runs.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/slurm/backend.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// Nothing can catch these two: for the batch script alone, one that batch.sh can take stands for
// them.
constexpr int kKillNumber = 9;
constexpr int kStopNumber = 19;
constexpr int kCarrier = 10;

// Returns whether srun starts the programs of the run's command, as batch.sh has it.
bool HasSteps(const v1::JobSpec& spec) {
  return spec.nodes() > 1 || spec.slurm().tasks_per_node() > 1 || !spec.image().empty() ||
         spec.roles_size() > 0 || !spec.slurm().signal().empty();
}

// Returns the processes of the Slurm job that are meant. A command that is no batch script is all
// of its job's programs, which are in steps, or children of the batch script.
SignalTo ProcessesFor(const agents::RunHandle& run, v1::SignalTarget target) {
  if (target == v1::SIGNAL_TARGET_BATCH) return SignalTo::kBatch;
  const bool is_script =
      run.assignment == nullptr || run.assignment->spec().slurm().has_batch_script();
  if (is_script) return target == v1::SIGNAL_TARGET_ALL ? SignalTo::kAll : SignalTo::kSteps;
  return HasSteps(run.assignment->spec()) ? SignalTo::kSteps : SignalTo::kAll;
}

}  // namespace

absl::Status SlurmBackend::SendSignal(const agents::RunHandle& run,
                                      const agents::RunSignal& signal) {
  std::vector<JobToEnd> jobs;
  {
    const MutexLock lock(mutex_);
    const auto track = tracks_.find(run.run_key);
    if (track != tracks_.end() && track->second.live.has_value())
      jobs.push_back({run.run_key, *track->second.live});
  }
  if (jobs.empty()) {
    if (absl::Status looked = FindAlive({run.run_key}, &jobs); !looked.ok()) return looked;
  }
  if (jobs.empty())
    return absl::FailedPreconditionError("Slurm has no job of the run that has not ended");
  const SignalTo to = ProcessesFor(run, signal.target);
  int number = signal.number;
  if (absl::Status told = TellBatchScript(run.run_key, to, &number); !told.ok()) return told;
  return SchedulerOf(run.run_key).Signal(jobs.front().id, number, to);
}

// The batch shell of the run's job hands on what is for it alone: see batch/signals.sh.
absl::Status SlurmBackend::TellBatchScript(const std::string& run_key, SignalTo to, int* number) {
  std::string word;
  if (to == SignalTo::kAll) word = "full\n";
  if (to == SignalTo::kBatch) {
    word = fmt::format("batch {}\n", *number);
    if (*number == kKillNumber || *number == kStopNumber) *number = kCarrier;
  }
  if (word.empty()) return absl::OkStatus();
  return HostOf(run_key)->WriteFile(PathsOf(run_key).signal(), word, {.mode = 0600});
}

}  // namespace muster::slurm
