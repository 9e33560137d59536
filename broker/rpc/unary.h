// Helpers for the answers of unary calls.
#ifndef MUSTER_BROKER_RPC_UNARY_H_
#define MUSTER_BROKER_RPC_UNARY_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/services.h"
#include "broker/app/worker_pool.h"
#include "contract/errors.h"
#include "rpc/status.h"

namespace muster::broker {

template <typename Response>
void Answer(grpc::ServerUnaryReactor* reactor, Response* out, absl::StatusOr<Response> result) {
  const absl::Status status = result.status();
  if (status.ok()) *out = *std::move(result);
  reactor->Finish(rpc::ToGrpc(status));
}

// Makes the callback of a use case whose result is the answer.
template <typename Response>
auto AnswerInto(grpc::ServerUnaryReactor* reactor, Response* out) {
  return
      [reactor, out](absl::StatusOr<Response> result) { Answer(reactor, out, std::move(result)); };
}

// Runs `read` on a pool: a WorkerPool, or Readers.
template <typename Pool, typename Read>
void OnReaders(Pool* readers, grpc::ServerUnaryReactor* reactor, Read read) {
  if (!readers->PostCall(std::move(read))) reactor->Finish(rpc::ToGrpc(readers->Refusal()));
}

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_UNARY_H_
