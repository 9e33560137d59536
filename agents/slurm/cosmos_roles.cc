#include "agents/slurm/cosmos_roles.h"

#include <algorithm>
#include <utility>

#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

absl::Status Bad(std::string_view role, std::string_view name, std::string_view problem) {
  return contract::BadField(fmt::format("{}.{}", role, name), problem);
}

absl::Status Check(std::string_view role, const CosmosParallelism& sizes) {
  const std::pair<std::string_view, int64_t> numbers[] = {{"tp", sizes.tp},
                                                          {"pp", sizes.pp},
                                                          {"cp", sizes.cp},
                                                          {"dp_replicate", sizes.dp_replicate},
                                                          {"dp_shard", std::max(sizes.dp_shard, 1)},
                                                          {"n_init_replicas", sizes.replicas}};
  for (const auto& [name, number] : numbers) {
    if (number >= 1 && number <= kMaxCosmosFactor) continue;
    return Bad(role, name,
               fmt::format("{} is out of range; use 1 to {}", number, kMaxCosmosFactor));
  }
  return absl::OkStatus();
}

using Replica = CosmosPlan::Replica;

// Each on nodes of its own.
absl::Status PlaceLarge(std::string_view role, uint64_t gpus, uint32_t replicas,
                        uint32_t gpus_per_node, CosmosPlan::Role* plan) {
  if (gpus % gpus_per_node != 0) {
    return Bad(role, "tp",
               fmt::format("a replica of {} GPUs does not fill nodes of {}; choose tp, pp "
                           "and dp so that it does",
                           gpus, gpus_per_node));
  }
  const uint64_t nodes = gpus / gpus_per_node;
  if (nodes * replicas > kMaxCosmosNodes) {
    return Bad(role, "n_init_replicas",
               fmt::format("{} nodes; use at most {}", nodes * replicas, kMaxCosmosNodes));
  }
  for (uint32_t i = 0; i < replicas; ++i) {
    Replica replica;
    replica.nodes = static_cast<uint32_t>(nodes);
    replica.first_node = i * replica.nodes;
    plan->replicas.push_back(std::move(replica));
  }
  plan->nodes = static_cast<uint32_t>(nodes * replicas);
  return absl::OkStatus();
}

// Several on a node, so that each needs a port and GPUs of its own.
void PlaceSmall(uint32_t gpus, uint32_t replicas, uint32_t gpus_per_node, CosmosPlan::Role* plan) {
  const uint32_t on_a_node = gpus_per_node / gpus;
  for (uint32_t i = 0; i < replicas; ++i) {
    Replica replica;
    replica.first_node = i / on_a_node;
    replica.port = kCosmosRendezvousPort + i;
    for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
      replica.gpus.push_back(i % on_a_node * gpus + gpu);
    }
    plan->replicas.push_back(std::move(replica));
  }
  plan->nodes = (replicas + on_a_node - 1) / on_a_node;
}

absl::StatusOr<CosmosPlan::Role> Place(std::string_view role, uint64_t gpus, uint32_t replicas,
                                       uint32_t gpus_per_node) {
  if (gpus > kMaxCosmosNodes * gpus_per_node) {
    return Bad(
        role, "tp",
        fmt::format("a replica of {} GPUs is more than {} nodes have", gpus, kMaxCosmosNodes));
  }
  CosmosPlan::Role plan;
  plan.gpus_per_replica = static_cast<uint32_t>(gpus);
  if (gpus < gpus_per_node) {
    PlaceSmall(plan.gpus_per_replica, replicas, gpus_per_node, &plan);
    return plan;
  }
  if (absl::Status placed = PlaceLarge(role, gpus, replicas, gpus_per_node, &plan); !placed.ok()) {
    return placed;
  }
  return plan;
}

}  // namespace

absl::StatusOr<CosmosPlan> PlanCosmos(std::string_view train_type, const CosmosParallelism& policy,
                                      const CosmosParallelism& rollout, uint32_t gpus_per_node) {
  if (!train_type.empty() && train_type != "grpo" && train_type != "sft") {
    return contract::BadField("train_type", fmt::format("{} is not known; use grpo or sft",
                                                        contract::Quoted(train_type)));
  }
  if (gpus_per_node < 1 || gpus_per_node > kMaxCosmosFactor) {
    return contract::BadField("gpus_per_node", fmt::format("{} is out of range; use 1 to {}",
                                                           gpus_per_node, kMaxCosmosFactor));
  }
  if (absl::Status good = Check("policy", policy); !good.ok()) return good;
  CosmosPlan plan;
  // At most 1024 to the power of 5.
  const uint64_t policy_gpus = uint64_t{policy.tp} * policy.pp * policy.cp * policy.dp_replicate *
                               static_cast<uint64_t>(std::max(policy.dp_shard, 1));
  absl::StatusOr<CosmosPlan::Role> placed =
      Place("policy", policy_gpus, policy.replicas, gpus_per_node);
  if (!placed.ok()) return placed.status();
  plan.policy = *std::move(placed);
  if (train_type == "sft") return plan;
  if (absl::Status good = Check("rollout", rollout); !good.ok()) return good;
  placed = Place("rollout", uint64_t{rollout.tp} * rollout.pp, rollout.replicas, gpus_per_node);
  if (!placed.ok()) return placed.status();
  plan.rollout = *std::move(placed);
  return plan;
}

}  // namespace muster::slurm
