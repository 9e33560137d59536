// The part of a pod that shows a run its lease. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_LEASE_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_LEASE_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "agents/kubernetes/api/json_fields.h"

namespace muster::kubernetes {

// The ConfigMap. It has a key for each agent that has runs in its namespace.
inline constexpr char kLeaseObject[] = "muster-lease";
// The containers' directory of the file, beside kRunFiles, where the start script looks.
inline constexpr char kLeaseDirectory[] = "/muster/lease";
// The time between TERM and KILL for a program whose lease has ended: Kubernetes' own default.
inline constexpr absl::Duration kLeaseGrace = absl::Seconds(30);
// The run's file with the terms for the start script; a run without it has no lease.
inline constexpr char kLeaseTermsFile[] = "lease";

// Returns the agent's key in the ConfigMap: the broker's instance and the cluster's name there.
std::string LeaseKey(std::string_view run_key, std::string_view cluster);

// Returns the terms: the time between two looks, the bound of the clocks' difference, and the
// grace, in seconds.
std::string LeaseTerms();

// Returns the volume, and its mount.
Json LeaseVolume(std::string_view run_key, std::string_view cluster);
Json LeaseMount();

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_POD_LEASE_H_
