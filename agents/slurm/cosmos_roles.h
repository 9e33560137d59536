// How many nodes the roles of a Cosmos-RL training take, and where each replica sits. Pure.
//
// Example: nodes of 8 GPUs, policy tp=4 dp_shard=4 with 1 replica, rollout tp=2 with 6 replicas.
//   A policy replica has 4 x 4 = 16 GPUs: two whole nodes, 0 and 1; its ranks meet at node 0, port
//   29345. A rollout replica has 2 GPUs, so four fit on a node: replicas 0-3 on node 2 (GPUs 0,1
//   2,3 4,5 6,7; ports 29345 to 29348), replicas 4 and 5 on node 3 (ports 29349 and 29350). The job
//   takes 4 nodes; the controller runs beside the policy on node 0, port 8082.
#ifndef MUSTER_AGENTS_SLURM_COSMOS_ROLES_H_
#define MUSTER_AGENTS_SLURM_COSMOS_ROLES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::slurm {

inline constexpr uint32_t kCosmosControllerPort = 8082;
inline constexpr uint32_t kCosmosRendezvousPort = 29345;
// More than any cluster has; keeps the products below far from overflow.
inline constexpr uint32_t kMaxCosmosFactor = 1024;
inline constexpr uint64_t kMaxCosmosNodes = 10000;

// The sizes of one role, each 1 to kMaxCosmosFactor. `dp_shard` may be 0 or -1, "as it comes",
// which counts as 1.
struct CosmosParallelism {
  uint32_t tp = 1;
  uint32_t pp = 1;
  uint32_t cp = 1;            // policy only
  uint32_t dp_replicate = 1;  // policy only
  int32_t dp_shard = 1;       // policy only
  uint32_t replicas = 1;      // n_init_replicas
};

struct CosmosPlan {
  struct Replica {
    uint32_t first_node = 0;  // of the role's nodes, where its ranks meet
    uint32_t nodes = 1;
    uint32_t port = kCosmosRendezvousPort;
    std::vector<uint32_t> gpus;  // visible on its node; empty: all, the replica has whole nodes
  };
  struct Role {
    uint32_t gpus_per_replica = 0;
    uint32_t nodes = 0;
    std::vector<Replica> replicas;
  };
  Role policy;   // on the first nodes of the allocation
  Role rollout;  // on the rest; nothing for "sft"
  uint32_t nodes() const { return policy.nodes + rollout.nodes; }
};

// `train_type`: "grpo" (also if empty) has policy and rollout, "sft" the policy alone.
// INVALID_ARGUMENT names the role and the number that does not fit: a replica of more than one node
// must fill its nodes. A small replica never spans two nodes: where GPUs are left on a node, the
// next one goes to another.
absl::StatusOr<CosmosPlan> PlanCosmos(std::string_view train_type, const CosmosParallelism& policy,
                                      const CosmosParallelism& rollout, uint32_t gpus_per_node);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_COSMOS_ROLES_H_
