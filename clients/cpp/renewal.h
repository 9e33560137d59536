// Answers a broker that does not accept the client's credential: one renewal, and a little
// patience, because a broker needs a moment to hear of a provider's new key. Private to the client.
#ifndef MUSTER_CLIENTS_CPP_RENEWAL_H_
#define MUSTER_CLIENTS_CPP_RENEWAL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rpc/backoff.h"

namespace muster::client {

class Credential;

class Renewal {
 public:
  // As long as a fetch of keys takes that the broker may not begin at once.
  static constexpr absl::Duration kPatience = absl::Seconds(8);

  // `credential` outlives it; null: Await is not called.
  explicit Renewal(Credential* credential) : credential_(credential) {}

  // Renews what was `refused` the first time, and waits a moment each other time. An error says why
  // it cannot be renewed.
  absl::Status Await(const std::string& refused);
  // Returns whether the patience is over: the renewed one is not accepted either.
  bool is_over() const { return is_over_; }

 private:
  Credential* credential_;
  std::optional<absl::Time> renewed_;
  rpc::Backoff backoff_{absl::Milliseconds(200), absl::Seconds(1)};
  bool is_over_ = false;
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_RENEWAL_H_
