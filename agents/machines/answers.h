// Answers people's questions to the machines backend: what there is, a preflight, a plan.
#ifndef MUSTER_AGENTS_MACHINES_ANSWERS_H_
#define MUSTER_AGENTS_MACHINES_ANSWERS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/machines/container_runtime.h"
#include "agents/machines/load.h"
#include "agents/machines/machine.h"
#include "agents/machines/run_records.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

// The run key in plans, whose job has no number yet.
inline constexpr char kPlannedRun[] = "plan-1-1";

// ---- pure except for the time of day

// Considers all known hosts, since a run may come to any: the least capable one
// decides.
ContainerRuntime ContainersOf(const Load& load);
v1::Inventory InventoryOf(const Load& load, const std::string& identity);
v1::ClusterDetails DetailsOf(const Load& load);
// Returns two lines for each host over SSH: the way there, and what it has.
v1::ClusterChecks CheckHosts(const Load& load);

// `spec` is what Launch would write down, `waiting` counts the runs that wait and are not held,
// `wait` is the longest time that the run would wait, and `place` is what people call the cluster:
// "machine" or "cluster".
v1::JobPlan PlanRun(const RunSpec& spec, const std::optional<Misfit>& misfit,
                    const Request& request, const Ledger& ledger, size_t waiting,
                    absl::Duration wait, std::string_view place);

// Returns the plan of a job that no machine could be given; `why` names the field.
v1::JobPlan PlanRefusal(const std::string& why);

// ---- the agent's own machine

// `supervisor` says whether it can be started. Looks at the directory's disk, and writes there.
v1::ClusterChecks CheckMachine(const Machine& machine, const std::string& runs_directory,
                               const absl::Status& supervisor);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_ANSWERS_H_
