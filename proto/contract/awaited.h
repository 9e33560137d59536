// The advice about what a run would wait for, because it may still come. Pure.
#ifndef MUSTER_PROTO_CONTRACT_AWAITED_H_
#define MUSTER_PROTO_CONTRACT_AWAITED_H_

#include <string>

#include "absl/time/time.h"

namespace muster::contract {

// Tells what to do about a claim. `exists`: it is there, and has no volume. `patience`: how long
// the run waits; zero if not known here.
std::string AwaitedClaimRemedy(bool exists, absl::Duration patience = absl::ZeroDuration());

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_AWAITED_H_
