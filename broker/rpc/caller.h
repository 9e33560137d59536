// Finds out who makes a call.
#ifndef MUSTER_BROKER_RPC_CALLER_H_
#define MUSTER_BROKER_RPC_CALLER_H_

#include "absl/status/status.h"
#include "broker/app/principal.h"

namespace grpc {
class CallbackServerContext;
}

namespace muster::broker {

struct Context;

// Finds out who calls a service for people: over TLS by its certificate or its token, else by
// its token or its connection. It never fails: whoever is not accepted has a refusal, which
// every use case gives back. RESOURCE_EXHAUSTED: the call is beyond the bounds of its user
// (call_bounds.h).
Principal CallerOf(const Context& context, const grpc::CallbackServerContext& call);

// Checks a call of a service for agents. PERMISSION_DENIED, TOKEN_NOT_FOR_AGENTS: it has a token,
// and tokens are for people.
absl::Status CheckAgentCall(const grpc::CallbackServerContext& call);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CALLER_H_
