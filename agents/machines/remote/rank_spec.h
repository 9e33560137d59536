// Makes the spec of one rank of a run, for its host. Pure.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_RANK_SPEC_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_RANK_SPEC_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_records.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::machines {

// Returns the assignment with paths of the host in place of URIs; `directory` is the run's, there.
// INVALID_ARGUMENT names the field.
absl::StatusOr<agent::v1::Assignment> OnHost(const agent::v1::Assignment& assignment,
                                             const std::string& cluster,
                                             const std::string& directory);

// `addresses` are those of the run's hosts, by rank. `assignment`: as OnHost returns it.
RunSpec RankSpec(const agent::v1::Assignment& assignment, const std::string& cluster,
                 const std::string& directory, size_t rank,
                 const std::vector<std::string>& addresses, const RunRules& rules);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_RANK_SPEC_H_
