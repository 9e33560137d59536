// Describes a Slurm cluster and its present work: nodes, partitions and everybody's queue. Read
// here as Slurm's commands print them.
#ifndef MUSTER_AGENTS_SLURM_DETAILS_H_
#define MUSTER_AGENTS_SLURM_DETAILS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/cluster.pb.h"

namespace muster::slurm {

// The proto says so.
inline constexpr int kMaxDetailedNodes = 10000;
// Bytes of the reason that admins write about a node that is out of service.
inline constexpr size_t kMaxNodeReasonBytes = 256;
// Bytes of a node's generic resources, in Slurm's words.
inline constexpr size_t kMaxGresBytes = 1024;

// A partition, with the nodes that it names left to those.
struct Partition {
  v1::Pool pool;
  // The limits that keep jobs out, as "AllowAccounts=vision"; none if everybody may use it without
  // limits.
  std::vector<std::string> limits;
};

// The limits of a partition that an open one does not have, in scontrol's words.
using KeyValues = std::map<std::string, std::string, std::less<>>;
std::vector<std::string> LimitsOf(const KeyValues& values);

// One job of anybody's that has not ended.
struct QueuedJob {
  std::vector<std::string> partitions;  // of a job that waits, all that it may start in
  bool is_waiting = false;
  std::string user;
};

std::vector<std::string> NodeArguments();
std::vector<std::string> PartitionArguments();
std::vector<std::string> WholeQueueArguments();

// INTERNAL with the line if one cannot be read.
absl::StatusOr<std::vector<v1::Node>> ParseNodes(std::string_view output);
absl::StatusOr<std::vector<Partition>> ParsePartitions(std::string_view output);
absl::StatusOr<std::vector<QueuedJob>> ParseWholeQueue(std::string_view output);

// Returns whether a node in this state (Slurm's words in lower case) starts jobs, now or when it is
// free.
bool TakesWork(std::string_view state);

// Returns all of it together, without the time. `user` is the agent's own.
v1::ClusterDetails MakeDetails(const std::vector<Partition>& partitions,
                               std::vector<v1::Node> nodes, const std::vector<QueuedJob>& queue,
                               std::string_view user);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_DETAILS_H_
