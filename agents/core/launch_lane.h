// Launches, by a few threads that each take all that waits, up to what the backend takes at once.
//
// Add and Start: the agent's core thread. The queue is bounded by Options::max_launches_in_flight.
#ifndef MUSTER_AGENTS_CORE_LAUNCH_LANE_H_
#define MUSTER_AGENTS_CORE_LAUNCH_LANE_H_

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/core/worker_lane.h"

namespace muster::agent {

class LaunchLane {
 public:
  using Assignments = std::vector<std::shared_ptr<const v1::Assignment>>;
  // From a thread of the lane, once for each run.
  using Done = std::function<void(const std::string& run_key, LaunchOutcome outcome)>;

  // `backend` must outlive this object.
  LaunchLane(int threads, Backend* backend, Done done);

  void Add(std::shared_ptr<const v1::Assignment> assignment);
  // Begins with what has been added, in that order.
  void Start();

 private:
  Assignments Take();
  void LaunchSome();

  // Constant after construction.
  Backend& backend_;
  const size_t max_batch_;
  const Done done_;

  size_t added_ = 0;  // since Start; the core thread's

  std::mutex mutex_;
  std::deque<std::shared_ptr<const v1::Assignment>> waiting_;  // guarded by mutex_

  WorkerLane lane_;  // last: it uses all the others
};

}  // namespace muster::agent

#endif  // MUSTER_AGENTS_CORE_LAUNCH_LANE_H_
