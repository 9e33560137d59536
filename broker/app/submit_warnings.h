// Makes the warnings of a submit from the facts that agents publish, on another thread than the
// core's, from the clusters as they are shown.
#ifndef MUSTER_BROKER_APP_SUBMIT_WARNINGS_H_
#define MUSTER_BROKER_APP_SUBMIT_WARNINGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "broker/app/services.h"
#include "broker/core/cluster_view.h"
#include "broker/core/core.h"
#include "broker/core/requirements.h"
#include "broker/engine/effects.h"
#include "contract/admission.h"
#include "contract/place_limits.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::broker {

// Most warnings of one job in an answer.
inline constexpr int kMaxWarnings = 4;
// One answer's warnings have at most this many bytes, as many jobs have the same ones.
inline constexpr size_t kMaxWarningsBytes = 1 << 20;

// Holds a job of which published facts may warn, and its place among the jobs of its submit.
struct JobToJudge {
  int index = 0;
  contract::AdmissionNeeds needs;
  core::Requirements requirements;
};
std::vector<JobToJudge> JobsToJudge(const core::Submit& submit);
// Adds the warnings of the clusters that fit now to the answers of the jobs that are new.
void AddWarnings(const std::vector<JobToJudge>& jobs, const core::ClusterViews& clusters,
                 const contract::PlaceLimits& limits, v1::SubmitJobsResponse* response);

// Returns a `done` that does so before `done`.
SubmitDone WarningOfFacts(const Services& services, const core::Submit& submit, SubmitDone done);

// Cuts texts that agents wrote to what an answer has room for.
void BoundWarning(v1::SubmitWarning* warning);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SUBMIT_WARNINGS_H_
