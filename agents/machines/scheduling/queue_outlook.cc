#include "agents/machines/scheduling/queue_outlook.h"

namespace muster::machines {
namespace {

// Returns whether a round would start it: all that waits was tried, so that none of it comes
// before.
bool StartsAtOnce(const QueuedRun& run, const std::optional<ReservedRun>& reserved,
                  const Room& room, const Occupants& occupants, absl::Time now) {
  if (!reserved.has_value() || run.priority > reserved->priority) return room.Fits(run.request);
  const Reservation reservation(reserved->request, room, occupants, now);
  const bool takes_anything =
      MayTakeAnything(run.time_limit, reservation.time(), reserved->blocked_since, now);
  return (takes_anything ? room : reservation.beside()).Fits(run.request);
}

}  // namespace

absl::Duration WaitOf(const QueuedRun& run, const QueueOutlook& outlook, const Ledger& ledger,
                      const Occupants& occupants, absl::Time now) {
  const Room& room = ledger.room();
  const bool starts =
      outlook.waiting == 0
          ? room.Fits(run.request)
          : outlook.is_settled && StartsAtOnce(run, outlook.reserved, room, occupants, now);
  if (starts) return absl::ZeroDuration();
  if (outlook.waiting > 0 || !ledger.CouldFit(run.request)) return absl::InfiniteDuration();
  return Reservation(run.request, room, occupants, now).time() - now;
}

}  // namespace muster::machines
