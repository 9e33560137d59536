#include "agents/core/launch_lane.h"

#include <algorithm>
#include <utility>

namespace muster::agent {

LaunchLane::LaunchLane(int threads, Backend* backend, Done done)
    : backend_(*backend),
      max_batch_(std::max<size_t>(1, backend->MaxLaunchBatch())),
      done_(std::move(done)),
      lane_(threads) {}

void LaunchLane::Add(std::shared_ptr<const v1::Assignment> assignment) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(assignment));
  ++added_;
}

void LaunchLane::Start() {
  for (; added_ > 0; added_ -= std::min(added_, max_batch_)) {
    lane_.Post([this] { LaunchSome(); });
  }
}

LaunchLane::Assignments LaunchLane::Take() {
  const std::lock_guard lock(mutex_);
  Assignments taken;
  while (!waiting_.empty() && taken.size() < max_batch_) {
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return taken;
}

void LaunchLane::LaunchSome() {
  const Assignments taken = Take();
  if (taken.empty()) return;  // another thread took them along
  std::vector<LaunchOutcome> outcomes = backend_.LaunchMany(taken);
  outcomes.resize(taken.size());  // unclear, should the backend not answer for all
  for (size_t i = 0; i < taken.size(); ++i) done_(taken[i]->run_key(), std::move(outcomes[i]));
}

}  // namespace muster::agent
