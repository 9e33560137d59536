// One exchange over HTTPS with an identity provider, or with whoever takes notifications. It waits
// for the network.
//
// libcurl is loaded on the first exchange: it brings forty libraries along, and most brokers and
// most commands need none of it.
#ifndef MUSTER_PROTO_OIDC_HTTPS_H_
#define MUSTER_PROTO_OIDC_HTTPS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::oidc {

inline constexpr int kHttpOk = 200;
// An answer has at most this many bytes, some hundred times what a provider sends.
inline constexpr size_t kMaxAnswerBytes = 256 << 10;
// The time of one exchange, and of its connection.
inline constexpr absl::Duration kTimeout = absl::Seconds(10);
inline constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

struct HttpsRequest {
  std::string url{};
  std::string ca{};  // certificates in PEM that vouch for the server; empty: those of the system
  // Sent by POST as a form; none: GET.
  std::optional<std::vector<std::pair<std::string, std::string>>> form{};
  // Sent by POST as it is, beside `headers`; none: `form` tells.
  std::optional<std::string> body{};
  std::vector<std::string> headers{};  // more of them, each "Name: value"
  // Returns whether the answer is no longer wanted; asked about once a second. Empty: it stays
  // wanted.
  std::function<bool()> is_cancelled{};
};

struct HttpsAnswer {
  int status = 0;
  std::string body;
  // The time for which the answer may be kept, if the server says so.
  std::optional<absl::Duration> max_age{};
  // The time after which the server wants to be asked again, if it says so.
  std::optional<absl::Duration> retry_after{};
};

// INVALID_ARGUMENT: neither https://HOST..., nor http:// to a loopback address, which nobody else
// can read.
absl::Status CheckUrl(std::string_view url);

// Any status counts as an answer; redirections are not followed. UNAVAILABLE: nobody answered, or
// not in time, or not somebody for whom the certificates vouch. INVALID_ARGUMENT: the URL.
absl::StatusOr<HttpsAnswer> Exchange(const HttpsRequest& request);

}  // namespace muster::oidc

#endif  // MUSTER_PROTO_OIDC_HTTPS_H_
