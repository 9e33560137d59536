// Bounds what an agent may say of a run: history is kept as long as its job, and every answer that
// shows a run must fit into one message, whatever an agent, its scheduler or a node's clock makes
// up.
//
// These are pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_EVENT_BOUNDS_H_
#define MUSTER_BROKER_CORE_EVENT_BOUNDS_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::core {

// Evidence.detail states this bound.
inline constexpr size_t kMaxDetailBytes = 4096;
// Run.external_id states this bound; Slurm's job ids and Kubernetes's UIDs have fewer than 40
// bytes.
inline constexpr size_t kMaxExternalIdBytes = 128;
// One node's name has at most as many bytes as DNS allows.
inline constexpr size_t kMaxNodeNameBytes = 253;
// All node names of a run fit if there are ten thousand of them with 26 bytes each.
inline constexpr size_t kMaxNodesBytes = 256 << 10;
// Run.replicas, ReadinessIssue.message, StateReason.detail and Failure.detail state this bound.
inline constexpr int kMaxReplicas = 256;
inline constexpr size_t kMaxIssueBytes = 1024;
// Each other text of a replica is bounded by the longest name of a pod or of a node.
inline constexpr size_t kMaxReplicaNameBytes = 253;
// All replicas of a run fit if there are two hundred of them with the longest messages.
inline constexpr size_t kMaxReplicasBytes = 256 << 10;
// A failure's message. 64 bytes are left for the number of runs, which a job's view adds.
inline constexpr size_t kMaxFailureBytes = kMaxDetailBytes - 64;
// Failure.object, role and log_sign state this bound.
inline constexpr size_t kMaxFailureNameBytes = 256;
// Failure.quotes and FailureQuote state these bounds.
inline constexpr int kMaxQuotes = 8;
inline constexpr size_t kMaxQuoteBytes = 512;
// Run.results_directory and Progress state these bounds.
inline constexpr size_t kMaxResultsPathBytes = 4096;
inline constexpr int kMaxProgressNumbers = 100;
inline constexpr size_t kMaxProgressNameBytes = 132;
// Each name of a SlurmAllocation is bounded by the longest that Slurm shows in one word.
inline constexpr size_t kMaxSlurmNameBytes = 256;
// A scheduler's estimate is at most this far away: Slurm says "in a year" when it cannot tell.
inline constexpr absl::Duration kMaxEstimate = absl::Hours(24 * 3660);
// A node's clock may differ from the broker's by at most this; a larger difference counts as this
// one.
inline constexpr absl::Duration kMaxClockError = absl::Hours(1);

// Cuts between characters, so that the text stays UTF-8.
void Truncate(size_t max_bytes, std::string* text);

// Drops times that are none.
void BoundUsage(v1::ResourceUsage* usage);

// Cuts the event's texts between characters, and cuts its lists of nodes and replicas, keeping the
// lower ranks; moves its times into the life of the run, from its assignment to now; drops fields
// that are not known here, and those that only the broker fills in.
void Bound(absl::Time assigned, absl::Time now, agent::v1::RunEvent* event);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_EVENT_BOUNDS_H_
