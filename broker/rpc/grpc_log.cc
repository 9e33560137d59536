#include "broker/rpc/grpc_log.h"

#include <fmt/format.h>
#include <grpc/support/log.h>

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

// So many lines in a minute show what is wrong, and do not fill a disk.
constexpr int kMaxGrpcLines = 30;

void LogOne(gpr_log_func_args* message) {
  static std::atomic<int64_t> minute = 0;
  static std::atomic<int> lines = 0;
  const int64_t now = absl::ToUnixSeconds(absl::Now()) / 60;
  if (minute.exchange(now) != now) lines = 0;
  if (++lines > kMaxGrpcLines) return;
  LogEvent(spdlog::level::warn, "grpc", {{"message", message->message}});
}

}  // namespace

void LogGrpcMessages() { gpr_set_log_function(LogOne); }

}  // namespace muster::broker
