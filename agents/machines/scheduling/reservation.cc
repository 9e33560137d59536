#include "agents/machines/scheduling/reservation.h"

#include <algorithm>
#include <vector>

namespace muster::machines {
namespace {

// Returns the number of the occupants that must end until the request fits, in their order; `room`
// becomes what is free then.
size_t EndsNeeded(const Request& request, const std::vector<const Allocation*>& ends, Room* room) {
  // With the ends before `low` it does not fit, with those before `high` it does.
  size_t low = 0;
  size_t high = ends.size();
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    Room tried = *room;
    for (size_t i = low; i < middle; ++i) tried.GiveBack(*ends[i]);
    if (tried.Fits(request)) {
      high = middle;
    } else {
      low = middle;
      *room = std::move(tried);
    }
  }
  for (size_t i = low; i < high; ++i) room->GiveBack(*ends[i]);
  return high;
}

}  // namespace

bool MayTakeAnything(absl::Duration time_limit, absl::Time reserved, absl::Time blocked_since,
                     absl::Time now) {
  const absl::Time end = now + time_limit;
  if (end != absl::InfiniteFuture()) return end <= reserved;
  return reserved == absl::InfiniteFuture() && now < blocked_since + kFreePassing;
}

Reservation::Reservation(const Request& request, const Room& room, const Occupants& occupants,
                         absl::Time now)
    : then_(room), beside_(room) {
  std::vector<const Allocation*> ends;
  ends.reserve(occupants.size());
  for (const auto& [order, occupant] : occupants) ends.push_back(&occupant.allocation);
  const size_t needed = EndsNeeded(request, ends, &then_);
  if (needed > 0) {
    auto last = std::next(occupants.begin(), static_cast<std::ptrdiff_t>(needed) - 1);
    const absl::Time end = last->first.end;
    // One that is over its limit is about to end.
    time_ = std::max(end, now);
    // Resources of runs that end at the same moment are free as well.
    while (time_ != absl::InfiniteFuture() && ++last != occupants.end() &&
           last->first.end <= time_) {
      then_.GiveBack(last->second.allocation);
    }
  }
  if (const std::optional<Allocation> place = then_.Find(request)) then_.Take(*place);
  for (uint32_t host = 0; host < then_.size(); ++host) beside_.Meet(room, then_, host);
}

void Reservation::OnStart(const Allocation& allocation, bool from_beside, const Room& room) {
  if (from_beside) then_.Take(allocation);
  for (const NodeAllocation& node : allocation.nodes) beside_.Meet(room, then_, node.host);
}

}  // namespace muster::machines
