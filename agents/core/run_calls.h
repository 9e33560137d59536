// The backend's blocking calls about runs, in lanes of their own: a slow launch delays no end.
//
// Runs that wait for the same kind of call go to the backend together, as far as it takes many at
// once. The agent's core thread calls everything but the constructor and the answers, and never has
// two calls for one run; so it bounds the queues.
#ifndef MUSTER_AGENTS_CORE_RUN_CALLS_H_
#define MUSTER_AGENTS_CORE_RUN_CALLS_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agents/core/agent_core.h"
#include "agents/core/backend.h"
#include "agents/core/batch_lane.h"
#include "agents/core/failure_log.h"
#include "agents/core/launch_secrets.h"
#include "agents/core/worker_lane.h"

namespace muster::agents {

class RunCalls {
 public:
  // Takes the result of a call, once for each; from the threads of the lanes.
  using Answer = std::function<void(Input)>;

  // Tells whether the leases of runs are known to go on; null: runs need none.
  using LeasesLive = std::function<bool()>;

  // Each kind of call gets `threads`; launches of runs that bring files along get `file_threads`,
  // or, with 0, are launched among the others. `backend` must outlive this object.
  RunCalls(int threads, int file_threads, Backend* backend, FetchSecrets fetch, Answer answer,
           LeasesLive leases_live = nullptr);

  void Launch(RunHandle run);
  void Lookup(RunHandle run);
  void Fence(RunHandle run);
  void End(RunHandle run);
  void Hold(RunHandle run, bool held);
  void Forget(RunHandle run);
  // Begins at once.
  void ReadUsage(std::vector<RunHandle> runs);
  // Begins with what has been added: to be called once all that goes together is there.
  void Start();

 private:
  RunCalls(int threads, int file_threads, Backend* backend, const Capabilities& abilities,
           FetchSecrets fetch, Answer answer, LeasesLive leases_live);

  struct Wish {
    RunHandle run;
    bool held = false;
  };

  // Its node would not start it.
  bool LacksLease(const RunHandle& run) const;
  void LaunchNow(const std::vector<RunHandle>& runs);
  void EndNow(const std::vector<RunHandle>& runs);
  void ForgetNow(const std::vector<RunHandle>& runs);
  void HoldNow(std::vector<Wish> wishes);
  void HoldNow(const std::vector<RunHandle>& runs, bool held);

  Backend& backend_;
  const decltype(Capabilities::usage_of) usage_of_;
  const FetchSecrets fetch_secrets_;
  const Answer answer_;
  const LeasesLive leases_live_;
  FailureLog failures_;

  BatchLane<RunHandle> launches_;
  std::optional<BatchLane<RunHandle>> file_launches_;  // if they have a lane of their own
  BatchLane<RunHandle> ends_;
  BatchLane<Wish> holds_;
  BatchLane<RunHandle> forgets_;
  WorkerLane lookups_;  // and fences, which follow them
  WorkerLane usages_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RUN_CALLS_H_
