// Clusters by name, and the jobs in their queues.
#ifndef MUSTER_CLIENTS_CLI_SKY_CLUSTER_JOBS_H_
#define MUSTER_CLIENTS_CLI_SKY_CLUSTER_JOBS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::cli::sky {

struct FoundClusters {
  std::vector<v1::Cluster> clusters;  // by name, each once
  std::vector<std::string> missing;   // the patterns that fit none
};
// The clusters whose names fit one of the shell's patterns ("lab", "gpu-*"); without patterns all.
absl::StatusOr<FoundClusters> FindClusters(client::Client& client,
                                           const std::vector<std::string>& patterns);
// Returns whether a name stands for several.
bool IsPattern(std::string_view name);
// NOT_FOUND, unless the broker knows the cluster.
absl::Status CheckCluster(client::Client& client, const std::string& name);

// Selects jobs of a cluster.
struct QueueQuery {
  std::string cluster;
  std::optional<std::string> user;  // none: everybody's
  bool only_active = false;         // those that have not ended
  bool only_running = false;
  size_t limit = 1;
};
struct QueuedJobs {
  std::vector<v1::Job> jobs;  // the newest first, with their specs, without runs
  bool has_more = false;
};
// The jobs that the cluster has or had, and those that wait in the broker for it alone.
absl::StatusOr<QueuedJobs> FindQueue(client::Client& client, const QueueQuery& query);

// "42" as a job's number. INVALID_ARGUMENT otherwise.
absl::StatusOr<uint64_t> ParseJobId(std::string_view word);
// The job with its runs. NOT_FOUND: it is not there, or not in that cluster's queue.
absl::StatusOr<v1::Job> FindJob(client::Client& client, const std::string& cluster, uint64_t id);

}  // namespace muster::cli::sky

#endif  // MUSTER_CLIENTS_CLI_SKY_CLUSTER_JOBS_H_
