// The words for room that is kept for a job which has waited long. Pure functions, for any thread.
#ifndef MUSTER_PROTO_CONTRACT_RESERVATIONS_H_
#define MUSTER_PROTO_CONTRACT_RESERVATIONS_H_

#include <cstdint>
#include <string>

#include "muster/v1/facts.pb.h"

namespace muster::contract {

// The sentence and the remedy of ROOM_RESERVED: `subject` is the job that the room is kept for,
// `until` the time at which that one has room at the latest, if it is known.
std::string RoomReserved(const v1::StateReason& reason);
std::string RoomReservedRemedy(const v1::StateReason& reason);

// The sentence of WITHDRAWING where `subject` is the job that takes the room.
std::string Preempting(const v1::StateReason& reason);
// The evidence of the step that asks for it.
std::string PreemptedFor(uint64_t job, int32_t priority);

// Says of the job that the room is kept for that it is, behind the sentence, which has to be there.
void SayRoomIsKept(v1::StateReason* reason);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_RESERVATIONS_H_
