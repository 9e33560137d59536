// Holds the part of a job's spec that placement, retries and shares need, and nothing else.
//
// RequirementsOf makes them from the spec, at a submit and again at a restart; they are never
// stored. Jobs with equal requirements are alike to the core: they wait in one line (groups.h).
// Pure values, for any thread.
#ifndef MUSTER_BROKER_CORE_REQUIREMENTS_H_
#define MUSTER_BROKER_CORE_REQUIREMENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "contract/admission.h"
#include "contract/retry.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::core {

// The spread of a job's roles over nodes.
enum class RolesNeed : uint8_t {
  kNone,  // the job has no roles
  kNodesOfTheirOwn,
  kSharedNodes,  // two of the roles share a node
};

// A job's demand on a cluster because of its image. The image itself does not matter for placement.
enum class ImageNeed : uint8_t {
  kNone,  // the job has no image
  kRegistry,
  kFile,  // a file, by its absolute path
};

// The rule for a job whose cluster is lost, see JobSpec.on_cluster_loss.
enum class LossRule : uint8_t { kWait, kWhenFenced, kNow };

// The needs that the clusters' admission facts may speak against, shared by copies.
class AdmissionPart {
 public:
  AdmissionPart() = default;
  explicit AdmissionPart(contract::AdmissionNeeds needs);

  // Null: it has none.
  const contract::AdmissionNeeds* needs() const { return part_ ? &part_->needs : nullptr; }

  friend bool operator==(const AdmissionPart& a, const AdmissionPart& b) {
    return a.part_ == b.part_ || a.bytes() == b.bytes();
  }
  template <typename H>
  friend H AbslHashValue(H h, const AdmissionPart& part) {
    return H::combine(std::move(h), part.bytes());
  }

 private:
  struct Part {
    contract::AdmissionNeeds needs;
    std::string bytes;  // the needs as bytes, see BytesOf
  };
  std::string_view bytes() const { return part_ ? std::string_view(part_->bytes) : ""; }

  std::shared_ptr<const Part> part_;
};

// Takes about 300 B, and each text as much as it has beyond 15 B.
struct Requirements {
  std::string project;  // the project that pays
  uint32_t nodes = 1;
  uint64_t cpu_millis = 0;    // for each node, in thousandths of a core; 0: left open
  uint64_t memory_bytes = 0;  // for each node; 0: left open
  uint64_t gpu_millis = 0;    // for each node, in thousandths of a GPU
  // True: the amounts are those of the whole run, which gets as many nodes as that takes; on Slurm.
  bool is_total = false;
  std::string gpu_type;  // as the job's user writes it; empty: any
  std::optional<int64_t> time_limit_s;
  std::vector<std::string> clusters;  // the only ones that may take it, by name; empty: any
  // Clusters that have refused it and are not asked now, in the order of their names (refuse.cc).
  // No spec tells them.
  std::vector<std::string> ruled_out;
  // The pools that the job may use, by name; empty means the cluster's default. A pool given as
  // kubernetes.namespace is a namespace to its user.
  std::vector<std::string> pools;
  bool pool_is_namespace = false;
  bool needs_slurm = false;       // contract::WhySlurmOnly gives the reason
  bool needs_kubernetes = false;  // the job has a kubernetes section
  bool brings_files = false;      // it uploads files
  bool brings_shell = false;      // it takes a shell's variables along
  bool has_secrets = false;
  bool is_array_task = false;  // of an array with several tasks
  bool preemptible = false;    // see JobSpec.preemptible
  RolesNeed roles = RolesNeed::kNone;
  ImageNeed image = ImageNeed::kNone;
  LossRule on_loss = LossRule::kWait;
  // The first field of the spec that names a file of the user's own machine; empty if none does.
  std::string machine_file_field;
  contract::RetryRule retry;
  AdmissionPart admission;

  friend bool operator==(const Requirements&, const Requirements&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Requirements& r) {
    h = H::combine(std::move(h), r.project, r.nodes, r.cpu_millis, r.memory_bytes, r.gpu_millis,
                   r.is_total, r.gpu_type, r.time_limit_s.value_or(-1), r.clusters, r.ruled_out,
                   r.pools, r.pool_is_namespace, r.needs_slurm, r.needs_kubernetes, r.brings_files,
                   r.brings_shell, r.has_secrets, r.is_array_task, r.preemptible,
                   static_cast<int>(r.roles), static_cast<int>(r.image),
                   static_cast<int>(r.on_loss), r.machine_file_field);
    h = H::combine(std::move(h), r.retry.max_runs, r.retry.on_preemption, r.retry.on_failure,
                   r.retry.exit_codes, r.retry.backoff);
    return H::combine(std::move(h), r.admission);
  }
};

// `spec` must be normalized. `archive_bytes`: size of what the job brings along, if known. A spec
// does not tell it: after a restart it is not judged, and the agent refuses a run that brings too
// much.
Requirements RequirementsOf(const v1::JobSpec& spec, uint64_t archive_bytes = 0);

// Collects requirements without duplicates, in the order in which they were first added; a store
// makes this list from the specs that it restores.
class RequirementsList {
 public:
  RequirementsList();
  RequirementsList(const RequirementsList&) = delete;
  RequirementsList& operator=(const RequirementsList&) = delete;

  // Returns the index in the list.
  uint32_t Add(Requirements requirements);
  // Returns the list. Nothing may be added after it.
  std::vector<Requirements> Take() { return std::move(list_); }

 private:
  struct Hash {
    const std::vector<Requirements>* list;
    size_t operator()(uint32_t i) const { return absl::Hash<Requirements>()((*list)[i]); }
  };
  struct Equal {
    const std::vector<Requirements>* list;
    bool operator()(uint32_t a, uint32_t b) const { return (*list)[a] == (*list)[b]; }
  };

  std::vector<Requirements> list_;
  absl::flat_hash_set<uint32_t, Hash, Equal> index_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_REQUIREMENTS_H_
