// Fills in the parts of a job that come from its runs, and the reason why it waits. Pure functions,
// for any thread.
#ifndef MUSTER_BROKER_STORE_JOB_VIEW_H_
#define MUSTER_BROKER_STORE_JOB_VIEW_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "broker/core/changes.h"
#include "muster/v1/job.pb.h"

namespace muster::store {

// Most nodes that one assignment names.
inline constexpr size_t kMaxExcludedNodes = 64;
// Most of a job's latest steps that are searched for the one that held it.
inline constexpr int kMaxStepsToHold = 100;

// Puts the stored hold into the row of a job. ShowState then shows whether the job's run is held
// still after a release.
void PutHold(core::HoldState hold, v1::Job* job);

// Puts in the failure of a job that another one's end let fail, so that it never had a run.
void PutFailedDependency(uint64_t other, v1::Job* job);

// Returns the jobs that a job which is restored depends on. `states` are theirs, in the order of
// depends_on; JOB_STATE_UNSPECIFIED: it was deleted.
std::vector<core::LiveJob::Dependency> RestoredDependencies(const v1::JobSpec& spec,
                                                            absl::Span<const v1::JobState> states);

// Fills in exit, failure and the reason, from the row of the job, its latest run, if it has one,
// and its spec, if that is there.
void ShowState(const v1::Run* latest, v1::Job* job);

// Says who holds the job, and why, from the step at which it was held.
void ShowHold(const v1::Transition& step, v1::Job* job);

// Puts the usage into a run of the store. False: the run stays as it is, see core::PutUsage.
bool TakeUsage(const core::PutUsage& change, v1::Run* run);

// Returns the nodes of the runs that failed because of their nodes on the cluster of the latest
// run, the latest first, at most kMaxExcludedNodes. Another cluster does not know them, or has
// others of the same name. `runs` are all of the job's, the first one first.
std::vector<std::string> FailedNodes(const google::protobuf::RepeatedPtrField<v1::Run>& runs);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_JOB_VIEW_H_
