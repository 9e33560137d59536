#include "broker/engine/core_loop.h"

#include <utility>

namespace muster::broker {
namespace {

// The two clocks are not read at the same instant. Agents are allowed far more than this.
constexpr absl::Duration kClockTolerance = absl::Milliseconds(500);

bool Assigns(const core::Output& output, size_t from) {
  for (size_t i = from; i < output.effects.size(); ++i) {
    if (std::holds_alternative<core::SendAssignments>(output.effects[i])) return true;
  }
  return false;
}

}  // namespace

CoreLoop::CoreLoop(std::unique_ptr<core::Core> core, absl::Duration tick_interval, Instant start)
    : core_(std::move(core)),
      tick_interval_(absl::ToChronoNanoseconds(tick_interval)),
      last_(start),
      next_tick_(start.steady) {}

core::Output CoreLoop::Turn(std::vector<core::Input> inputs, Instant now,
                            const OnHandled& on_handled) {
  core::Output out;
  const absl::Duration clock_set_by = ClockSetBy(now);
  if (now.steady >= next_tick_ || clock_set_by != absl::ZeroDuration()) {
    core_->Handle(core::Tick{clock_set_by}, now.wall, &out);
    next_tick_ = now.steady + tick_interval_;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t changes = out.changes.size();
    const size_t effects = out.effects.size();
    core_->Handle(std::move(inputs[i]), now.wall, &out);
    on_handled({.input = i, .changes_before = changes, .effects_before = effects, .out = out});
  }
  const size_t before = out.effects.size();
  const bool ended_early = core_->PlaceJobs(now.wall, &out);
  may_place_more_ = ended_early || Assigns(out, before);
  out.clusters = core_->TakeShownClusters(now.wall);
  out.uses = core_->TakeShownUses();
  return out;
}

core::Output CoreLoop::LastTurn(Instant now) {
  core::Output out;
  core_->Handle(core::KeepUse{}, now.wall, &out);
  return out;
}

absl::Duration CoreLoop::Patience(Instant now) const {
  if (may_place_more_) return absl::ZeroDuration();
  return absl::FromChrono(next_tick_ - now.steady);
}

absl::Duration CoreLoop::ClockSetBy(Instant now) {
  const absl::Duration set_by =
      (now.wall - last_.wall) - absl::FromChrono(now.steady - last_.steady);
  last_ = now;
  return absl::AbsDuration(set_by) < kClockTolerance ? absl::ZeroDuration() : set_by;
}

}  // namespace muster::broker
