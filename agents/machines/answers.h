// Answers people's questions to the machines backend: a preflight, the machine's load, a plan.
#ifndef MUSTER_AGENTS_MACHINES_ANSWERS_H_
#define MUSTER_AGENTS_MACHINES_ANSWERS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agents/machines/machine.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/scheduler.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

// The run key in plans, whose job has no number yet.
inline constexpr char kPlannedRun[] = "plan-1-1";

// `supervisor`: whether it can be started. Looks at the directory's disk, and writes there.
v1::ClusterChecks CheckMachine(const Machine& machine, const std::string& runs_directory,
                               const absl::Status& supervisor);

// Pure but for the time of day.
v1::ClusterDetails DescribeMachine(const Machine& machine, const Scheduler::Load& load);

// `spec` is what Launch would write down, `waiting` how many runs wait that are not held, `wait`
// how long the run would wait at the most, `place` what people call the cluster: "machine" or
// "cluster". Pure but for the time of day.
v1::JobPlan PlanRun(const RunSpec& spec, const std::optional<Misfit>& misfit,
                    const Request& request, const Ledger& ledger, size_t waiting,
                    absl::Duration wait, std::string_view place);

// The plan of a job that no machine could be given: `why` names the field.
v1::JobPlan PlanRefusal(const std::string& why);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_ANSWERS_H_
