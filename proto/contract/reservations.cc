#include "contract/reservations.h"

#include <fmt/format.h>

#include "contract/rfc3339.h"
#include "contract/sentences.h"

namespace muster::contract {
std::string RoomReserved(const v1::StateReason& reason) {
  std::string words =
      fmt::format("the job fits; the room is kept for job {}, which comes first", reason.subject());
  if (reason.has_until()) words += fmt::format(", and has it by {}", Rfc3339(reason.until()));
  return words;
}

std::string RoomReservedRemedy(const v1::StateReason& reason) {
  if (!reason.has_until())
    return "time limits (--time) tell when runs end, so that others can start before";
  return "a job with a time limit (--time) that ends before then may start now";
}

std::string Preempting(const v1::StateReason& reason) {
  return fmt::format("its run is being ended, because job {} comes first and takes its room",
                     reason.subject());
}

std::string PreemptedFor(uint64_t job, int32_t priority) {
  return fmt::format("job {} of priority {} takes its room", job, priority);
}

void SayRoomIsKept(v1::StateReason* reason) {
  AddToSentence("room that comes free there is kept for this job", reason);
}

}  // namespace muster::contract
