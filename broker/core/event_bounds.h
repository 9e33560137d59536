// What an agent may say of a run: history is kept as long as its job, and every answer that shows a
// run must fit into one message, whatever an agent, its scheduler or a node's clock made up.
//
// Pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_EVENT_BOUNDS_H_
#define MUSTER_BROKER_CORE_EVENT_BOUNDS_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::core {

// As Evidence.detail says.
inline constexpr size_t kMaxDetailBytes = 4096;
// As Run.external_id says; Slurm's job ids and Kubernetes's UIDs have less than 40.
inline constexpr size_t kMaxExternalIdBytes = 128;
// Of one node's name: the longest that DNS allows.
inline constexpr size_t kMaxNodeNameBytes = 253;
// Of all the node names of a run: ten thousand of them with 26 bytes each.
inline constexpr size_t kMaxNodesBytes = 256 << 10;
// As Run.replicas, ReadinessIssue.message and StateReason.detail say.
inline constexpr int kMaxReplicas = 256;
inline constexpr size_t kMaxIssueBytes = 1024;
// Of their other texts: a pod's name has as many at most, and a node's.
inline constexpr size_t kMaxReplicaNameBytes = 253;
// Of all the replicas of a run: two hundred of them with the longest of messages.
inline constexpr size_t kMaxReplicasBytes = 256 << 10;
// Of a failure's message, so that a job's view can say before it after how many runs.
inline constexpr size_t kMaxFailureBytes = kMaxDetailBytes - 64;
// As Failure.quotes and FailureQuote say.
inline constexpr int kMaxQuotes = 8;
inline constexpr size_t kMaxQuoteBytes = 512;
// How far ahead a scheduler's estimate may be: Slurm says "in a year" of what it cannot tell.
inline constexpr absl::Duration kMaxEstimate = absl::Hours(24 * 3660);
// How far a node's clock may be from the broker's; what is beyond that is taken to be this far.
inline constexpr absl::Duration kMaxClockError = absl::Hours(1);

// Cuts at a character's edge, so that the text stays UTF-8.
void Truncate(size_t max_bytes, std::string* text);

// Cuts the event's texts, at characters, and its lists of nodes and replicas, of which the lower
// ranks stay; moves its times into the life of the run, from its assignment to now; drops fields
// that are not known here.
void Bound(absl::Time assigned, absl::Time now, agent::v1::RunEvent* event);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_EVENT_BOUNDS_H_
