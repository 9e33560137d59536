#include "tests/sim/leases.h"

namespace muster::sim {
namespace {

// Quartz clocks, and what NTP adds at most.
constexpr double kMostDrift = 0.0005;

}  // namespace

SimLeases::SimLeases(World* world)
    : world_(*world),
      skew_ms_(absl::ToInt64Milliseconds(
          world->random.Between(-absl::Milliseconds(agents::kLeaseClockSkewMs),
                                absl::Milliseconds(agents::kLeaseClockSkewMs)))),
      drift_(kMostDrift * (static_cast<double>(world->random.Below(201)) / 100 - 1)) {}

int64_t SimLeases::NodeSteadyMs() const {
  return static_cast<int64_t>(static_cast<double>(UnixMs()) * (1 + drift_));
}

void SimLeases::Renew(absl::Duration remaining, absl::Duration travel) {
  if (world_.Strikes(0.1)) return world_.Count("lease not renewed");
  const agents::LeaseFile lease =
      agents::NextLease(number_, UnixMs(), absl::ToInt64Milliseconds(remaining));
  number_ = lease.number;
  if (UnixMs() >= end_unix_ms_) term_ = number_;
  end_unix_ms_ = lease.end_unix_ms;
  world_.loop.After(travel, [this, lease, term = term_] {
    if (file_.has_value() && file_->number >= lease.number) return;
    file_ = lease;
    file_term_ = term;
  });
}

bool SimLeases::AreLive() const { return UnixMs() < end_unix_ms_; }

std::optional<agents::LeaseFile> SimLeases::FileOf(uint64_t term) const {
  return term == file_term_ ? file_ : std::nullopt;
}

bool SimLeases::MayStart(const std::string& run_key) {
  const auto term = terms_.find(run_key);
  if (term == terms_.end() || world_.Has(Mutation::kNodesIgnoreLeases)) return true;
  const std::optional<agents::LeaseFile> lease = FileOf(term->second);
  if (!agents::MayStartUnderLease(lease, NodeUnixMs())) {
    world_.Count("run not started without a lease");
    return false;
  }
  leases_.insert_or_assign(run_key, agents::NodeLease(*lease, NodeSteadyMs(), NodeUnixMs()));
  return true;
}

bool SimLeases::IsOver(const std::string& run_key) {
  const auto lease = leases_.find(run_key);
  if (lease == leases_.end()) return false;
  if (!lease->second.Over(FileOf(terms_.at(run_key)), NodeSteadyMs(), NodeUnixMs())) return false;
  world_.Count("run stopped at the end of its lease");
  return true;
}

}  // namespace muster::sim
