// Streams of the Jobs service that go on after the connection broke. Private to the client.
#ifndef MUSTER_CLIENTS_CPP_READERS_H_
#define MUSTER_CLIENTS_CPP_READERS_H_

#include <atomic>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/address.h"

namespace muster::client {

// The objects that a reader borrows from its client.
struct StreamContext {
  v1::JobsService::Stub* stub;
  const ClientOptions* options;
  const rpc::Address* address;
  std::atomic<bool>* was_answered;  // by a broker, on any call or stream of the client
  absl::Time deadline;              // of the whole stream
};

std::unique_ptr<WatchReader> NewWatchReader(StreamContext context, v1::WatchJobsRequest request,
                                            std::function<void()> on_heartbeat);
std::unique_ptr<LogReader> NewLogReader(StreamContext context, v1::ReadLogRequest request);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_READERS_H_
