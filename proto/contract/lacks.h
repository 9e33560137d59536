// The reasons why a cluster cannot have a job, as facts, and the sentences made from them. Pure.
#ifndef MUSTER_PROTO_CONTRACT_LACKS_H_
#define MUSTER_PROTO_CONTRACT_LACKS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"

namespace muster::contract {

enum class LackCode : uint8_t {
  kNothing,
  kNotNamed,         // the job names other clusters
  kClusterOfOthers,  // the job's project may not use the cluster; asked: the project
  kSlurm,            // the job runs on Slurm alone
  kKubernetes,       // the job has a kubernetes section
  kRoles,            // the cluster runs no jobs with roles
  kSharedRoles,      // it runs none whose roles share nodes
  kImage,            // the job has no image, and the cluster runs only jobs with one
  kContainers,       // the job has an image, and the cluster runs no containers
  kImageFile,        // the job's image is a file, which only Slurm runs
  kUploads,          // the agent takes no files that jobs bring along
  kShell,            // the agent takes no variables of the user's shell
  kSecrets,          // the agent gives runs no secrets
  kFence,            // its nodes cannot stop runs whose lease has ended
  kPartsOfGpus,      // the cluster gives GPUs whole
  kMachineFile,      // the cluster does not see files of the user's machine; asked: the field
  kAccount,          // the job's project needs an account of Slurm; asked: the project
  kPoolOfOthers,     // the job's project may not use its pools; asked: the project
  kAnyPool,          // the cluster has no pool
  kPool,             // it has no pool of that name; asked: the name
  kNamespace,        // likewise, where pools are namespaces
  kGpuTypeUnclear,   // several types of GPUs may be meant; asked: the type
  kGpuType,          // no node has GPUs of that type
  kGpus,             // no node has as many GPUs
  kCores,            // no node has as many cores
  kMemory,           // no node has as much memory
  kAllAtOnce,        // no node has all that is needed at once
  kNodes,            // too few nodes have what is needed
  kNodesOfARun,      // the pool gives a run fewer nodes
  kTimeLimit,        // the pool's time limit is shorter
  kRefused,          // what the agent has published speaks against the job
  kOpenPool,         // the pool takes no jobs at the moment
};

// One lack. Its pointers and views are into the cluster's inventory and what the job asks for, and
// hold as long as these.
struct Lack {
  LackCode code = LackCode::kNothing;
  v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;  // of the cluster
  const v1::Inventory* inventory = nullptr;             // of the cluster; with kPool, kNamespace
  const v1::Pool* pool = nullptr;                       // from kGpuTypeUnclear on, not of kRefused
  std::string_view asked = {};                          // see the codes
  std::string gpu_type = {};  // with lacks of GPUs: as the pool spells it; empty: any
  // The amounts are in the units of v1::Shortage, from kGpuTypeUnclear to kTimeLimit and for
  // kPartsOfGpus.
  uint64_t requested = 0;
  uint64_t available = 0;
  uint64_t good_nodes = 0;  // with kNodes: how many have what is needed
  // With kRefused, the whole refusal as a sentence, and the field of the first one.
  std::string refusal = {};
  std::string refused_field = {};
};

// `pool "gpu" has 2 nodes with what each needs (resources), 4 are needed; ask for at most 2
// (nodes)`. Empty: nothing is lacking.
std::string SentenceOf(const Lack& lack);

// Returns the thing that is lacking, if it is a single one.
std::optional<v1::Shortage> ShortageOf(const Lack& lack);

// Returns the reason that the cluster does not have the job: DOES_NOT_FIT, CANNOT_FENCE, or
// POOL_UNAVAILABLE.
v1::StateReason LackReason(const Lack& lack, const std::string& cluster);

// Returns the reason that no cluster can ever take the job. `lacks` are the lacks of each cluster,
// as NotPlaced says them; for a job for Slurm alone those of that kind. `why_slurm`: as
// WhySlurmOnly has it; empty means any kind may take it. `names_clusters`: true if the job names
// the clusters that may take it.
std::string CannotBePlaced(const std::string& lacks, const std::string& why_slurm,
                           bool names_clusters);

// Returns the types of GPUs that the pool's nodes have.
std::set<std::string> GpuTypesOf(const v1::Pool& pool);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_LACKS_H_
