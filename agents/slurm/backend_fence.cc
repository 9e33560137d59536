// Proofs that nothing of a run lives on the cluster, and that nothing ever will.
#include <string>
#include <utility>

#include "agents/hosts/private_modes.h"
#include "agents/slurm/backend.h"
#include "agents/slurm/outcomes.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using agents::FenceOutcome;

FenceOutcome Fenced(FenceOutcome::Kind kind, v1::EvidenceSource source, std::string detail) {
  return {kind, MakeEvidence(source, std::move(detail))};
}

FenceOutcome NotYet(std::string why) {
  return Fenced(FenceOutcome::Kind::kNotYet, v1::EVIDENCE_SOURCE_AGENT, std::move(why));
}

}  // namespace

// batch.sh creates the claim as a file, and only if there is nothing of that name. A directory of
// that name is made only where no file is, and keeps every later job of the run from beginning.
absl::Status SlurmBackend::TakeClaim(const std::string& run_key) {
  // A claim beside files that are not there might be made on another file system.
  if (const std::string why = WhyAbsenceIsNoProof(run_key); !why.empty())
    return absl::UnavailableError(why);
  const std::string claim = PathsOf(run_key).claim();
  return ReadsOf(run_key).Do(claim, [claim](hosts::Host* host) {
    return host->MakeDirectories(claim, hosts::kPrivateDirectory);
  });
}

FenceOutcome SlurmBackend::Fence(const agents::RunHandle& run) {
  const absl::Status taken = TakeClaim(run.run_key);
  if (taken.ok()) {
    return Fenced(FenceOutcome::Kind::kNeverBegins, v1::EVIDENCE_SOURCE_AGENT,
                  "no Slurm job has claimed the run, and the agent has taken its claim: none can "
                  "begin any more");
  }
  const absl::StatusOr<std::optional<JobId>> owner = ReadOwner(PathsOf(run.run_key));
  if (!owner.ok()) return NotYet(std::string(ToStd(owner.status().message())));
  if (!owner->has_value()) {
    return NotYet(fmt::format("the run's claim could not be taken: {}", ToStd(taken.message())));
  }
  return FenceOwner(run, **owner);
}

FenceOutcome SlurmBackend::FenceOwner(const agents::RunHandle& run, const JobId& owner) {
  const auto judge = [&](v1::EvidenceSource source, const SlurmState& state) {
    const bool has_ended = HasEnded(state.phase);
    return Fenced(
        has_ended ? FenceOutcome::Kind::kEnded : FenceOutcome::Kind::kNotYet, source,
        fmt::format("Slurm job {} has claimed the run, and is {}", owner.ToString(), state.word));
  };
  const absl::StatusOr<std::vector<QueueRow>> queue = SharedQueue();
  if (!queue.ok()) return NotYet(std::string(ToStd(queue.status().message())));
  for (const QueueRow& row : *queue) {
    if (row.job_id == owner) return judge(v1::EVIDENCE_SOURCE_SQUEUE, row.state);
  }
  const absl::StatusOr<std::vector<HistoryRow>> history =
      SchedulerOf(run.run_key).HistoryOf({owner}, HistoryBegin(run));
  if (history.ok()) {
    for (const HistoryRow& row : *history) {
      if (row.job_id == owner) return judge(v1::EVIDENCE_SOURCE_SACCT, row.state);
    }
  }
  return NotYet(fmt::format("Slurm job {} has claimed the run; squeue does not list it, and {}",
                            owner.ToString(),
                            history.ok() ? "sacct does not know its end"
                                         : std::string(ToStd(history.status().message()))));
}

}  // namespace muster::slurm
