// The places where the runs of a machines cluster go, as the backend sees them: the agent's own
// machine (own_machine.cc), or hosts over SSH (remote/ssh_hosts.cc). Behind it lies all that
// differs between the two: how a run is written down, started, watched, ended and found again.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_MACHINES_PLACES_H_
#define MUSTER_AGENTS_MACHINES_PLACES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/machines/machines.h"
#include "agents/machines/run_board.h"
#include "agents/machines/run_records.h"
#include "agents/machines/run_scheduler.h"
#include "agents/machines/run_signal.h"
#include "agents/machines/scheduling/request.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

// The traces of a run in its records.
struct RunTrace {
  bool has_begun = false;   // it has left the queue
  std::string path;         // of the records
  std::string_view sign;    // of a beginning, which they show or not: "start"
  std::string external_id;  // empty: not known
};

class Places {
 public:
  virtual ~Places() = default;

  // ---- what there is

  // Returns the word for all of them in texts: "machine" or "cluster".
  virtual std::string_view Word() const = 0;
  virtual absl::Status Probe() const = 0;
  virtual std::string Identity() const = 0;
  virtual RunScheduler& scheduler() = 0;
  virtual v1::ClusterChecks Check() const = 0;
  // Returns whether hosts have come, gone or changed since the last call.
  virtual bool TakeNews() { return false; }
  // Returns the host that has what runs leave, which lives as long; null means this machine.
  virtual hosts::Host* output_host() = 0;

  // ---- jobs

  // Puts the paths of the run's place into the job. INVALID_ARGUMENT names the field.
  virtual absl::StatusOr<agent::v1::Assignment> Resolve(
      const agent::v1::Assignment& assignment) const = 0;
  // Returns the reason that no place can ever have the run.
  virtual std::optional<Misfit> RefusalOf(const agent::v1::Assignment& assignment) const = 0;
  // Makes the spec for its first node. `resolved`: as Resolve returns it.
  virtual RunSpec SpecOf(const agent::v1::Assignment& resolved) const = 0;
  // Adds what can be said of the job before it is launched. An error refuses it.
  virtual absl::Status AddToPlan(const v1::JobSpec& spec, const v1::JobSpec& resolved,
                                 v1::JobPlan* plan) const = 0;

  // ---- runs; what follows is told on the board

  virtual absl::StatusOr<RunTrace> Find(const std::string& run_key) const = 0;
  // Takes over the runs of the journal, and begins to work. Returns the last place in the queue
  // that a run has had.
  virtual absl::StatusOr<uint64_t> Adopt(const std::vector<agents::RunHandle>& runs) = 0;
  // Writes down a new run, on disk when it returns, and puts it into the queue. Returns the answer
  // if that cannot be done.
  virtual std::optional<agents::LaunchOutcome> Accept(
      std::shared_ptr<const agent::v1::Assignment> assignment,
      const agent::v1::Assignment& resolved, uint64_t order) = 0;
  // Looks at the records of a run that is not on the board.
  virtual absl::Status Observe(const agents::RunHandle& run,
                               std::vector<agents::Observation>* observations) = 0;
  virtual absl::Status Cancel(const std::string& run_key) = 0;
  // Does as Capabilities::send_signal.
  virtual absl::Status Signal(const std::string& run_key, const ProcessSignal& signal) = 0;
  // Does as Backend::Fence; `on_board` is the board's answer, if it has the run.
  virtual agents::FenceOutcome Fence(const std::string& run_key,
                                     std::optional<agents::FenceOutcome> on_board) = 0;
  // Do as Capabilities: the longest life after a lease's end, zero if runs cannot be stopped so.
  virtual absl::Duration fence_delay() const { return absl::ZeroDuration(); }
  virtual absl::Status RenewLeases(absl::Duration /*remaining*/) {
    return absl::UnimplementedError("no leases are kept here");
  }
  virtual agents::RunOutput OpenLogs(const agents::RunHandle& run) = 0;
  virtual void Forget(const agents::RunHandle& run) { scheduler().Forget(run.run_key); }
};

// The board outlives the places; the records are below state_dir.
absl::StatusOr<std::unique_ptr<Places>> CreateOwnMachine(const MachinesConfig& config,
                                                         const std::string& state_dir,
                                                         RunBoard* board);
// Waits, for a bounded time, until each host has answered. A host that cannot be reached is no
// error.
absl::StatusOr<std::unique_ptr<Places>> CreateSshHosts(const MachinesConfig& config,
                                                       const std::string& state_dir,
                                                       RunBoard* board);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_PLACES_H_
