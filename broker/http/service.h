// The things that all connections share. Any thread.
#ifndef MUSTER_BROKER_HTTP_SERVICE_H_
#define MUSTER_BROKER_HTTP_SERVICE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/http/body_shares.h"
#include "broker/http/bounds.h"
#include "broker/http/calls.h"
#include "broker/http/cors.h"
#include "broker/http/hosts.h"
#include "broker/http/methods.h"
#include "broker/http/page.h"

namespace muster::http {

using Credentials = std::vector<std::string_view>;

// A caller that the broker lets in.
struct Caller {
  // Empty: the call is open to anyone, and nobody has looked at the credential.
  std::string user;

  bool IsAnyone() const { return user.empty(); }
};

// The questions that the server asks the broker. None of them blocks.
struct Hooks {
  // Says if the caller may make the call at all, before the body is read. `peer` is where
  // the call comes from.
  std::function<absl::StatusOr<Caller>(std::string_view path, const Credentials&,
                                       const std::string& peer)>
      admit;
  // The text of /metrics.
  std::function<absl::StatusOr<std::string>(const Credentials&, const std::string& peer)> metrics;
  std::function<bool()> is_ready;
  // The header by which the broker knows a call that comes from here, and where from.
  std::function<std::pair<std::string, std::string>(const std::string& peer)> entrance;
};

struct Counts {
  static constexpr size_t kClasses = 6;  // of statuses; the last is that of 5xx

  mutable std::atomic<uint64_t> connections = 0;
  mutable std::atomic<uint64_t> refused_connections = 0;
  mutable std::atomic<uint64_t> requests = 0;  // being answered
  mutable std::atomic<uint64_t> body_bytes = 0;
  mutable std::atomic<uint64_t> answer_bytes = 0;  // of unary calls, not written yet
  mutable std::array<std::atomic<uint64_t>, kClasses> answers = {};  // since the start
};

struct Service {
  Methods methods;
  Cors cors;
  Hosts hosts;
  Calls calls;
  Hooks hooks;
  std::span<const Asset> page;
  Counts counts = {};
  mutable BodyShares shares{kMaxBodyBytesOfUser};
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_SERVICE_H_
