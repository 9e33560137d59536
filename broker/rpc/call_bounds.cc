#include "broker/rpc/call_bounds.h"

#include <fmt/format.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/interceptor.h>

#include <string_view>

#include "contract/errors.h"

namespace muster::broker {
namespace {

using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// Only the services of people are bounded; agents have no bounds of a user.
constexpr std::string_view kBounded = "/muster.v1.";

// gRPC destroys it with the call.
class CallEnd final : public grpc::experimental::Interceptor {
 public:
  CallEnd(CallBounds* bounds, const grpc::ServerContextBase* call)
      : bounds_(*bounds), call_(call) {}
  ~CallEnd() override { bounds_.End(call_); }

  void Intercept(InterceptorBatchMethods* batch) override { batch->Proceed(); }

 private:
  CallBounds& bounds_;
  const grpc::ServerContextBase* const call_;
};

class CallEndFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallEndFactory(CallBounds* bounds) : bounds_(bounds) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    if (!std::string_view(call->method()).starts_with(kBounded)) return nullptr;
    return new CallEnd(bounds_, call->server_context());
  }

 private:
  CallBounds* const bounds_;
};

}  // namespace

CallBounds::CallBounds(const UserBounds& bounds)
    : bounds_(bounds),
      rates_(bounds.max_calls_per_second * kBurstSeconds, absl::Seconds(kBurstSeconds)) {}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallBounds::MakeFactory(
    CallBounds* bounds) {
  return std::make_unique<CallEndFactory>(bounds);
}

absl::Status CallBounds::Begin(const grpc::ServerContextBase* call, const std::string& user,
                               absl::Time now) {
  if (const absl::Duration wait = rates_.Take(user, 1, now); wait > absl::ZeroDuration()) {
    return contract::WithQuota(
        user, contract::RetryableError(
                  absl::StatusCode::kResourceExhausted, "TOO_MANY_CALLS",
                  fmt::format("{} makes more than {} calls a second, the most of one user "
                              "(max_calls_per_second); ask less often, or for more in one call",
                              user, bounds_.max_calls_per_second),
                  wait));
  }
  const MutexLock lock(mutex_);
  size_t& in_flight = in_flight_[user];
  if (in_flight >= bounds_.max_calls_in_flight) {
    return contract::WithQuota(
        user, contract::RetryableError(
                  absl::StatusCode::kResourceExhausted, "TOO_MANY_CALLS_IN_FLIGHT",
                  fmt::format("{} has {} calls and streams in flight, the most of one user "
                              "(max_calls_in_flight); close some",
                              user, in_flight),
                  absl::Seconds(1)));
  }
  if (users_.try_emplace(call, user).second) ++in_flight;
  return absl::OkStatus();
}

size_t CallBounds::in_flight() const {
  const MutexLock lock(mutex_);
  return users_.size();
}

void CallBounds::End(const grpc::ServerContextBase* call) {
  const MutexLock lock(mutex_);
  const auto found = users_.find(call);
  if (found == users_.end()) return;
  const auto in_flight = in_flight_.find(found->second);
  if (--in_flight->second == 0) in_flight_.erase(in_flight);
  users_.erase(found);
}

}  // namespace muster::broker
