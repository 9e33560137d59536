// The agent as a process has it: the core with its journal, its backend, its broker and its
// threads.
//
// These are the threads: Run's caller is the core thread and owns the core, the journal and the
// control link. Blocking calls to the backend run in lanes of their own, one for observations, one
// for the files of ended runs, one for the progress of runs, one for inventories, one for each kind
// of call about runs (run_calls.h). Logs have their own thread (log_shipper.h).
#ifndef MUSTER_AGENTS_CORE_AGENT_H_
#define MUSTER_AGENTS_CORE_AGENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/core/agent_core.h"
#include "agents/core/backend.h"
#include "agents/core/file_sender.h"
#include "agents/core/identity.h"
#include "agents/core/journal.h"
#include "agents/core/log_shipper.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

struct AgentOptions {
  // affects behaviour
  Options core;  // lookup_grace and max_launches_in_flight come from the backend and from below
  BrokerEnd broker;
  absl::Duration min_redial = absl::Seconds(1);  // after a lost connection, doubling with jitter
  absl::Duration max_redial = absl::Seconds(30);
  absl::Duration refused_redial = absl::Seconds(10);  // after a refusal that may heal
  absl::Duration inventory_interval = absl::Seconds(60);
  absl::Duration inventory_retry =
      absl::Seconds(5);  // while the first one fails: there is no hello without it
  // Two inventories begin at least this far apart, even if there is news, because each may cost the
  // cluster some calls.
  absl::Duration inventory_pause = absl::Seconds(1);
  // A look at the runs that takes longer is told to the broker: a file server or the scheduler may
  // hang. Longer than a busy scheduler takes.
  absl::Duration observe_patience = absl::Minutes(2);
  absl::Duration drain_timeout =
      absl::Seconds(10);  // for calls under way when the agent is told to end
  std::function<absl::Time()> wall_clock =
      absl::Now;  // for stamps; waits have a clock of their own
  // The files that runs have made. None: they cannot be read from here.
  OpenRunFiles open_run_files = {};
  // The results directories of runs that are elsewhere. None: likewise.
  OpenRunFiles open_run_results = {};
  // The files of runs, where the cluster sends them itself. None: the two above count.
  RelayRunFiles relay_run_files = {};
  // The line of checks that says as whom jobs run. None: the backend says it.
  std::optional<v1::ClusterCheck> users = {};
  // affects performance
  int launch_parallelism = 4;  // 1: the cluster gets runs in the order of their assignment
  absl::Duration tick = absl::Milliseconds(200);  // how late a time-out may be seen
  LogShipperOptions logs;
};

class Agent {
 public:
  // The backend outlives the agent.
  Agent(AgentOptions options, Backend* backend, std::unique_ptr<Journal> journal);
  // Waits for the calls to the backend, also for one that hangs.
  ~Agent();

  // Works until Stop, or until it must not go on: FAILED_PRECONDITION (a broker or a backend that
  // it must not work with), DATA_LOSS (journal and broker disagree), or the journal's error. Once.
  absl::Status Run();
  // Lets the calls under way end, and makes Run return. Runs on the cluster go on. Any thread may
  // call it.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_AGENT_H_
