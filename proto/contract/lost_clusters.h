// Holds the rules and the words of clusters that are lost: the job's choice
// (JobSpec.on_cluster_loss), the reason of a job that waits for its cluster, and the evidence of
// its fail-over. Pure; any thread.
#ifndef MUSTER_PROTO_CONTRACT_LOST_CLUSTERS_H_
#define MUSTER_PROTO_CONTRACT_LOST_CLUSTERS_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

class FieldErrors;

// Adds an error if the policy is none that is known.
void CheckClusterLoss(const v1::JobSpec& spec, FieldErrors* errors);

// "fail_over_when_fenced", as job files and flags have it. Unspecified: "wait".
std::string_view Name(v1::ClusterLossPolicy policy);
// Returns unspecified if there is no such policy.
v1::ClusterLossPolicy ClusterLossPolicyOf(std::string_view name);

// Says why the broker gave a run up: "no word from cluster "a" since 2026-01-31T12:00:00Z".
std::string GivenUp(std::string_view cluster, absl::Time last_heard);

// Makes the reason of a job whose cluster is lost from that of one without a policy (NoWord).
// `until` is the time from which on another run follows.
v1::StateReason ClusterLost(v1::StateReason no_word, absl::Time until);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_LOST_CLUSTERS_H_
