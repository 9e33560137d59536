// Reads the inventory of a Slurm cluster from scontrol show config and sinfo.
#ifndef MUSTER_AGENTS_SLURM_INVENTORY_H_
#define MUSTER_AGENTS_SLURM_INVENTORY_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/slurm/submit.h"
#include "muster/v1/cluster.pb.h"

namespace muster::slurm {

struct ClusterSettings {
  std::string name;     // ClusterName
  std::string version;  // "22.05.8"
  bool keeps_accounting = false;
  std::string slurm_user;              // SlurmUser; empty if it is not told
  size_t max_array_size = 0;           // no task's index reaches it; 0 if it is not told
  std::set<std::string> taken_limits;  // see TakenLimits; none if it is not told
  bool hides_jobs = false;             // PrivateData: users see their own jobs alone
  absl::Duration min_job_age;          // how long slurmctld remembers an ended job
};

// Returns whether Slurm has this version or a later one; nothing if its version cannot be read.
std::optional<bool> IsFrom(const ClusterSettings& settings, uint32_t major, uint32_t minor);

std::vector<std::string> SettingsArguments();
// INTERNAL if the cluster's name is not in it.
absl::StatusOr<ClusterSettings> ParseSettings(std::string_view output);

std::vector<std::string> PoolArguments();
// INTERNAL with the line if one cannot be read.
absl::StatusOr<std::vector<v1::Pool>> ParsePools(std::string_view output);

// Adds the GPUs of a node by type, as Slurm writes them: "gpu:h100:4(S:0-1),gpu:2,lustre:1".
void AddGpus(std::string_view gres, google::protobuf::Map<std::string, uint32_t>* gpus);
// Adds nodes to the pool's group of nodes that are alike, or as a new group.
void AddNodes(const v1::NodeGroup& nodes, v1::Pool* pool);

// The partitions of the list (with commas) become the default pools: Slurm starts a job in
// whichever has room first. Nothing changes if there is none of them, or the list is empty.
void MarkDefaultPools(std::string_view partitions, std::vector<v1::Pool>* pools);

GpuTypes GpuTypesOf(const std::vector<v1::Pool>& pools);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_INVENTORY_H_
