// Bounds the calls of each user: how often they come, and how many are in flight. Any thread.
#ifndef MUSTER_BROKER_RPC_CALL_BOUNDS_H_
#define MUSTER_BROKER_RPC_CALL_BOUNDS_H_

#include <grpcpp/support/server_interceptor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/app/user_meter.h"
#include "sync/mutex.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::broker {

class CallBounds {
 public:
  // A burst is how scripts work: a user who was quiet may call so many seconds' worth at once.
  static constexpr int kBurstSeconds = 10;

  explicit CallBounds(const UserBounds& bounds);

  // Is for the builder of the server: it tells when a call has ended.
  static std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeFactory(
      CallBounds* bounds);

  // Counts a call that has come. RESOURCE_EXHAUSTED, with RetryInfo and QuotaFailure: it is one too
  // many. TOO_MANY_CALLS: in the last seconds. TOO_MANY_CALLS_IN_FLIGHT: at the same time.
  absl::Status Begin(const grpc::ServerContextBase* call, const std::string& user, absl::Time now);
  // Calls and streams of users in flight.
  size_t in_flight() const;
  // The call has ended; it may be one that was not counted.
  void End(const grpc::ServerContextBase* call);

 private:
  const UserBounds bounds_;
  UserMeter rates_;
  mutable Mutex mutex_;
  absl::flat_hash_map<const grpc::ServerContextBase*, std::string> users_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> in_flight_ ABSL_GUARDED_BY(mutex_);  // none is 0
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CALL_BOUNDS_H_
