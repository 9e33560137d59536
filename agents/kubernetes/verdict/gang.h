// Finds out whether a run of several pods is stuck half-way: some have nodes that they keep from
// others, and some find none. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_VERDICT_GANG_H_
#define MUSTER_AGENTS_KUBERNETES_VERDICT_GANG_H_

#include <cstddef>
#include <optional>

#include "absl/time/time.h"
#include "agents/kubernetes/verdict/verdict.h"

namespace muster::kubernetes {

// Returns whether another than Muster decides when all its pods start together.
bool HasOwnGangScheduler(const v1::JobSpec& spec);

// Returns the reason that the run is to be taken down whole and tried again; nothing if it is not
// stuck, or not for as long as `grace`. 0: it may be for ever. `pods` are those that the run is to
// have: some may never have been made, for want of quota.
std::optional<v1::Failure> FindStuckGang(const RunFacts& facts, size_t pods, absl::Duration grace);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_VERDICT_GANG_H_
