// Reasons as earlier releases stored them: sentences without a code.
#ifndef MUSTER_PROTO_CONTRACT_OLD_REASONS_H_
#define MUSTER_PROTO_CONTRACT_OLD_REASONS_H_

#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// Puts the sentence of an earlier release into state_reason, with the code OTHER. False: the
// message has none, and is as it was.
bool TakeOverReason(v1::Run* run);
bool TakeOverReason(agent::v1::RunEvent* event);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_OLD_REASONS_H_
