// Makes the error of a signal to one job, as a status and as a message. Pure.
#ifndef MUSTER_PROTO_CONTRACT_SIGNAL_ERROR_H_
#define MUSTER_PROTO_CONTRACT_SIGNAL_ERROR_H_

#include "absl/status/status.h"
#include "muster/v1/signal_jobs.pb.h"

namespace muster::contract {

// `status` is an error.
v1::SignalError ToSignalError(const absl::Status& status);

// An error that this release does not know keeps its words and is UNKNOWN.
absl::Status FromSignalError(const v1::SignalError& error);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SIGNAL_ERROR_H_
