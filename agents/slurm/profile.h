// Holds the values that a cluster's operator fills in where a job leaves them open. Pure.
#ifndef MUSTER_AGENTS_SLURM_PROFILE_H_
#define MUSTER_AGENTS_SLURM_PROFILE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::slurm {

struct Profile {
  // A value that is set here counts where a job sets nothing: time_limit, resources, and in slurm
  // the partition, account, qos, reservation, constraint, comment, mail_type, mail_user, requeue,
  // timeout and extra_options. The measures of a job (time limit, cores, memory, GPUs) are filled
  // in only if it names no partition, because they are the default partition's; batch scripts do
  // not get them, either, for they name theirs in their own way. The timeout comes with the time
  // limit, so a job with a time limit of its own gets no timeout.
  v1::JobSpec defaults;
  // A job with that many GPUs on a node gets its nodes for itself. 0: only one that asks for it.
  uint32_t gpus_per_node = 0;
};

// The spec as it is submitted. A request for 0 GPUs says that there shall be none, also where the
// profile has some. INVALID_ARGUMENT for resources.gpus: more than a node has, with the whole nodes
// that would do.
absl::StatusOr<v1::JobSpec> ApplyProfile(v1::JobSpec spec, const Profile& profile);

// Returns whether a job, as it is submitted, may have GPUs: Slurm gives a whole node with them, and
// more options and batch scripts ask for them in ways of their own.
bool MayHaveGpus(const v1::JobSpec& spec);

// The whole nodes that a request for GPUs comes to.
struct WholeNodes {
  uint64_t nodes = 1;
  uint64_t gpus = 0;  // on each
  bool exclusive = false;

  friend bool operator==(const WholeNodes&, const WholeNodes&) = default;
};
// Fewer GPUs than a node has are left as they are. Otherwise `gpus` is read as a sum, which is
// rounded up to whole nodes; `nodes` stays if it is more than these. With 8 GPUs in a node, 12 on 1
// node are 2 whole nodes with 16, and 8 on 2 nodes are 2 whole nodes, because a sum of 8 fits into
// one. `gpus_per_node` is at least 1.
WholeNodes RoundToWholeNodes(uint64_t nodes, uint64_t gpus, uint64_t gpus_per_node);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_PROFILE_H_
