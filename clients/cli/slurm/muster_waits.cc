#include "clients/cli/slurm/muster_waits.h"

#include <map>
#include <optional>
#include <string_view>

#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/one_job.h"
#include "clients/cli/slurm/query.h"
#include "contract/dependencies.h"
#include "contract/parts.h"
#include "contract/slurm_options.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// The end that the type of a dependency asks for; nothing: it asks for something else.
std::optional<v1::JobOutcome> OutcomeFor(std::string_view type) {
  if (type == "afterok" || type == "aftercorr") return v1::JOB_OUTCOME_SUCCEEDED;
  if (type == "afternotok") return v1::JOB_OUTCOME_FAILED;
  if (type == "afterany") return v1::JOB_OUTCOME_ENDED;
  return std::nullopt;
}

// The ends that are needed, by job. "afterok:8,afterany:8" is one on its success.
class Needs {
 public:
  // False: no end of the job is both.
  bool Add(uint64_t job, v1::JobOutcome outcome) {
    const auto [known, is_new] = all_.emplace(job, outcome);
    if (is_new || outcome == v1::JOB_OUTCOME_ENDED || outcome == known->second) return true;
    if (known->second != v1::JOB_OUTCOME_ENDED) return false;
    known->second = outcome;
    return true;
  }
  const std::map<uint64_t, v1::JobOutcome>& all() const { return all_; }

 private:
  std::map<uint64_t, v1::JobOutcome> all_;
};

// Adds what a job has to end as, if it has not ended so yet. False: Muster cannot wait for that.
absl::StatusOr<bool> AddJob(client::Client& client, uint64_t id, v1::JobOutcome outcome,
                            Needs* needs) {
  const absl::StatusOr<v1::Job> job = GetOneJob(client, id);
  // Slurm takes a job that it does not know for one that has ended, in any way.
  if (absl::IsNotFound(job.status())) return outcome == v1::JOB_OUTCOME_ENDED;
  if (!job.ok()) return job.status();
  if (contract::IsTerminal(job->state())) return contract::Meets(job->state(), outcome);
  return needs->Add(id, outcome);
}

// One condition, "afterok:42:43". False: Muster cannot wait for it.
absl::StatusOr<bool> AddCondition(client::Client& client, std::string_view condition,
                                  Needs* needs) {
  const auto parts = contract::Split(condition, ':');
  const std::optional<v1::JobOutcome> outcome = OutcomeFor(parts.front());
  if (!outcome) return false;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::optional<JobName> name = ParseJobName(parts[i]);
    if (!name) return false;
    const auto numbers = NumbersOf(client, {*name});
    if (!numbers.ok()) return numbers.status();
    if (numbers->size() > contract::kMaxDependencies) return false;
    if (numbers->size() > 1 && parts.front() == "aftercorr") return false;
    for (const uint64_t id : *numbers) {
      const absl::StatusOr<bool> added = AddJob(client, id, *outcome, needs);
      if (!added.ok() || !*added) return added;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> LetMusterWait(client::Client& client, v1::JobSpec* spec) {
  const std::string& written = spec->slurm().dependency();
  if (written.find(contract::kAnyOf) != written.npos) return false;
  Needs needs;
  for (const std::string_view condition : contract::Split(written, ',')) {
    const absl::StatusOr<bool> added = AddCondition(client, condition, &needs);
    if (!added.ok() || !*added) return added;
  }
  if (needs.all().size() > contract::kMaxDependencies) return false;
  for (const auto& [job, outcome] : needs.all()) {
    v1::JobDependency& one = *spec->add_depends_on();
    one.set_job_id(job);
    one.set_outcome(outcome);
  }
  spec->mutable_slurm()->clear_dependency();
  return true;
}

}  // namespace muster::cli
