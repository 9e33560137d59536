// Lets a job whose run a cluster has refused go to another one.
//
//   PENDING --FAILED, refused--> QUEUED, that cluster ruled out --another takes it--> PENDING
//                                           |
//                                           +-- its time has come --> QUEUED, for all clusters
//
// A cluster that is ruled out is one that the job does not fit: the job moves to the group whose
// requirements name it, so that every part of placement keeps to it. The store has nothing of that:
// after a restart the job's runs tell the same.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/fit.h"
#include "broker/core/impl.h"
#include "contract/launch_refusals.h"

namespace muster::core {
namespace {

// A cluster that is away for so long may never come back: no job waits for it in place of a failure
// that somebody can mend.
constexpr absl::Duration kLongAway = absl::Minutes(15);

}  // namespace

bool Core::Impl::CouldGoElsewhere(Requirements job, const std::vector<std::string>& refusing,
                                  absl::Time now) const {
  // Those that are due again since the last tick are not ruled out any more.
  job.ruled_out.clear();
  return std::any_of(clusters_by_name_.begin(), clusters_by_name_.end(), [&](const auto& entry) {
    const auto& [name, cluster] = entry;
    return std::find(refusing.begin(), refusing.end(), name) == refusing.end() &&
           (cluster->session || now - cluster->last_heard < kLongAway) &&
           CheckFit(job, cluster->saved, *limits_).ever();
  });
}

bool Core::Impl::GoesElsewhere(const v1::Run& run, uint64_t id, const Job& job, absl::Time now) {
  if (!contract::MayGoElsewhere(run) || !job.Takes(contract::JobEvent::kRetry)) return false;
  RefusedJobs::Clusters clusters;
  if (const RefusedJobs::Clusters* known = refused_.Find(id)) clusters = *known;
  if (refused_.TimesOf(id) >= contract::kMostRefusals) return false;
  contract::NoteRefusal(run, &clusters);
  const Requirements& requirements = groups_.at(job.group)->requirements;
  std::vector<std::string> refusing = refused_.RuledOut(id, now);
  refusing.push_back(run.cluster());
  if (!CouldGoElsewhere(requirements, refusing, now)) return false;
  refused_.Put(id, std::move(clusters), now);
  return true;
}

void Core::Impl::RuleOut(uint64_t id, Job& job, absl::Time now) {
  std::vector<std::string> clusters = refused_.RuledOut(id, now);
  const Group* const before = groups_.at(job.group);
  if (before->requirements.ruled_out == clusters) return;
  // A job that is being restored comes into line later.
  const bool is_in_line = jobs_.contains(id) && job.is_queued() && IsReady(id, job);
  if (is_in_line) StepAside(id, job);
  Requirements requirements = before->requirements;
  requirements.ruled_out = std::move(clusters);
  Group* const group =
      GroupFor(std::move(requirements), std::string(accounts_.NameOf(before->user)));
  ++group->jobs;
  LeaveGroup(std::exchange(job.group, group->id));
  if (is_in_line) LineUp(id, job);
}

void Core::Impl::EndRuledOut(absl::Time now) {
  constexpr int kMaxPerTick = 10'000;  // about 10 ms
  for (int i = 0; i < kMaxPerTick; ++i) {
    const std::optional<uint64_t> id = refused_.TakeDue(now);
    if (!id) return;
    RuleOut(*id, jobs_.at(*id), now);
  }
}

void Core::Impl::TellOfRefusal(uint64_t id, Job& job, const v1::Run& refused, Step& step) {
  // The count of runs that no retry counts is stored with the withdrawal.
  step.out->changes.push_back(PutWithdrawal{id, std::nullopt, job.returned()});
  absl::Time until = step.now;
  for (const contract::RefusingCluster& one : *refused_.Find(id)) {
    if (one.run == refused.number()) until = one.until;
  }
  RecordRetry(id, job, contract::GoesElsewhere(refused, until), step);
}

uint32_t Core::Impl::ReturnsOf(uint64_t id, const Job& job) const {
  return job.returned() - std::min<uint32_t>(job.returned(), refused_.TimesOf(id));
}

}  // namespace muster::core
