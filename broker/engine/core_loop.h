// Runs the loop around the core, without its threads: one turn handles the inputs that have come.
// The engine drives it with an inbox and this machine's clocks, the simulation with virtual ones.
//
// It is pure and single-threaded. Owner: the engine's core thread.
#ifndef MUSTER_BROKER_ENGINE_CORE_LOOP_H_
#define MUSTER_BROKER_ENGINE_CORE_LOOP_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/core/core.h"

namespace muster::broker {

// An instant on both clocks. Waits and intervals use the steady clock, which nobody sets; records
// use the wall clock.
struct Instant {
  absl::Time wall;
  std::chrono::steady_clock::time_point steady;
};

class CoreLoop {
 public:
  // An input that the core has just handled.
  struct Handled {
    size_t input = 0;           // its index in the batch
    size_t changes_before = 0;  // number of changes in `out` before it
    size_t effects_before = 0;  // number of effects in `out` before it
    const core::Output& out;
  };
  using OnHandled = std::function<void(const Handled&)>;

  // The first turn includes a tick.
  CoreLoop(std::unique_ptr<core::Core> core, absl::Duration tick_interval, Instant start);

  // Handles a tick, if one is due or somebody has set the clock, then the inputs in their order,
  // then one round of placement.
  core::Output Turn(std::vector<core::Input> inputs, Instant now, const OnHandled& on_handled);
  // Returns the time until the next turn must come at the latest, with or without inputs.
  absl::Duration Patience(Instant now) const;

  // Returns the clusters as the store knew them. Call it before the first turn.
  std::vector<core::ShownCluster> TakeShownClusters(Instant now) {
    return core_->TakeShownClusters(now.wall);
  }
  // The same for what projects have and use.
  std::vector<core::ShownUse> TakeShownUses() { return core_->TakeShownUses(); }
  // Takes the last turn of all, which stores what is stored only now and then.
  core::Output LastTurn(Instant now);
  core::Counters counters() const { return core_->counters(); }
  uint64_t last_sequence() const { return core_->last_sequence(); }
  absl::Status CheckInvariants() const { return core_->CheckInvariants(); }

 private:
  // Returns the amount by which the wall clock was set since the last call; zero within
  // kClockTolerance.
  absl::Duration ClockSetBy(Instant now);

  const std::unique_ptr<core::Core> core_;
  const std::chrono::steady_clock::duration tick_interval_;
  Instant last_;  // instant of the last turn
  std::chrono::steady_clock::time_point next_tick_;
  // True if the last round of placement ended at one of its bounds, or assigned runs: another round
  // may find more to do.
  bool may_place_more_ = false;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_CORE_LOOP_H_
