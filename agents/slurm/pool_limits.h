// Finds the requests of a run that its partition never grants.
#ifndef MUSTER_AGENTS_SLURM_POOL_LIMITS_H_
#define MUSTER_AGENTS_SLURM_POOL_LIMITS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/slurm/checks.h"
#include "agents/slurm/details.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::slurm {

// INVALID_ARGUMENT for time_limit if none of the partitions that the job names (or the default
// ones) allows that long: most clusters take such a job and let it wait for ever. OK if `pools`
// lacks one of them, which sbatch answers itself, and if the job names a QOS, which may lift the
// limit.
absl::Status CheckTimeLimit(const v1::JobSpec& spec, const std::vector<v1::Pool>& pools);

// The users' rights to partitions, and those of the agent's user. Empty: not known, and keeps
// nobody out.
struct Rights {
  std::vector<Partition> partitions;
  std::vector<Association> associations;
  bool is_privileged = false;  // as in Asker
  std::set<std::string> groups;
  bool lists_subaccounts = false;  // as ListsSubaccounts says
};
// The agent's user, with the account and the QOS of the job, or those that it may get as it names
// none.
Asker AskerOf(const v1::JobSpec& spec, const Rights& rights);
// INVALID_ARGUMENT if none of the partitions that the job names (or the default ones) is open to
// its account, its QOS and its user: Slurm takes such a job and lets it wait for ever. OK if one of
// them is not known.
absl::Status CheckRights(const v1::JobSpec& spec, const Rights& rights);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_POOL_LIMITS_H_
