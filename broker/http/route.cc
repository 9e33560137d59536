#include "broker/http/route.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "broker/http/codes.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::http {
namespace {

using contract::Quoted;

// As the protocol says.
constexpr size_t kMaxTimeoutDigits = 10;

absl::Status Bad(std::string_view reason, std::string_view words) {
  return contract::Error(absl::StatusCode::kInvalidArgument, reason, words);
}

Refusal Refuse(int http_status, absl::StatusCode code, std::string_view reason,
               std::string_view words, std::string headers = {}) {
  return {.status = contract::Error(code, reason, words),
          .http_status = http_status,
          .headers = std::move(headers)};
}

std::optional<Route> ProbeOf(const Head& head) {
  if (head.path == "/healthz") return Route{.kind = Route::Kind::kHealth};
  if (head.path == "/readyz") return Route{.kind = Route::Kind::kReady};
  if (head.path == "/metrics") return Route{.kind = Route::Kind::kMetrics};
  return std::nullopt;
}

// Probes, and the files of the page, are read.
std::variant<Route, Refusal> RouteOfRead(const Head& head, const Route& route) {
  if (head.method != "GET" && head.method != "HEAD") {
    return Refuse(405, absl::StatusCode::kUnimplemented, "WRONG_METHOD",
                  fmt::format("{} takes GET", head.path), "Allow: GET, HEAD\r\n");
  }
  return route;
}

absl::Status ReadTimeout(std::string_view text, std::optional<absl::Duration>* timeout) {
  if (text.empty()) return absl::OkStatus();
  int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms < 0 ||
      text.size() > kMaxTimeoutDigits || text.front() == '-') {
    return Bad("BAD_TIMEOUT",
               fmt::format("Connect-Timeout-Ms is {}, and must be a number of milliseconds with at "
                           "most {} digits",
                           Quoted(text), kMaxTimeoutDigits));
  }
  *timeout = absl::Milliseconds(ms);
  return absl::OkStatus();
}

// Other bytes would not be a header in gRPC.
bool IsPlain(std::string_view text) {
  return absl::c_all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// Looks at the headers of a call whose form is known.
absl::Status ReadCallHeaders(const Head& head, Route* route) {
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return contract::Error(
        absl::StatusCode::kUnimplemented, "NO_COMPRESSION",
        fmt::format("the body is compressed with {}, and the broker takes none: send it as it is",
                    Quoted(head.content_encoding)));
  }
  if (!head.protocol_version.empty() && head.protocol_version != "1") {
    return Bad("BAD_PROTOCOL_VERSION", fmt::format("Connect-Protocol-Version is {}, and must be 1",
                                                   Quoted(head.protocol_version)));
  }
  if (!absl::c_all_of(head.credentials, IsPlain)) {
    return contract::Error(absl::StatusCode::kUnauthenticated, "CREDENTIAL_MALFORMED",
                           "Authorization has characters that are not printable ASCII; send "
                           "\"Bearer\" and a token");
  }
  return ReadTimeout(head.timeout_ms, &route->timeout);
}

std::variant<Route, Refusal> RouteOfCall(const Head& head, const Methods& methods) {
  const Method* const method = methods.Find(head.path);
  if (method == nullptr) {
    return Refuse(404, absl::StatusCode::kUnimplemented, "NO_SUCH_METHOD",
                  fmt::format("there is no {} here; a call is POST /SERVICE/METHOD, for example "
                              "/muster.v1.JobsService/ListJobs",
                              Quoted(head.path)));
  }
  if (head.method != "POST") {
    return Refuse(405, absl::StatusCode::kUnimplemented, "WRONG_METHOD",
                  fmt::format("{} takes POST, not {}", head.path, Quoted(head.method)),
                  "Allow: POST\r\n");
  }
  const std::optional<Codec> codec = CodecOf(head.content_type);
  if (!codec || codec->is_stream == method->IsUnary()) {
    return Refuse(415, absl::StatusCode::kInvalidArgument, "WRONG_CONTENT_TYPE",
                  fmt::format("the Content-Type of {} is {} or its binary twin, not {}", head.path,
                              method->IsUnary() ? "application/json" : "application/connect+json",
                              Quoted(head.content_type)),
                  fmt::format("Accept-Post: {}\r\n", TypesOf(*method)));
  }
  Route route{.method = method, .codec = *codec, .timeout = std::nullopt};
  if (const absl::Status status = ReadCallHeaders(head, &route); !status.ok()) {
    Refusal refusal = RefusalOf(status);
    if (codec->is_stream) refusal.stream = codec;
    return refusal;
  }
  return route;
}

}  // namespace

Refusal RefusalOf(const absl::Status& status) {
  Refusal refusal{.status = status, .http_status = HttpStatus(status.code())};
  if (absl::IsUnauthenticated(status)) refusal.headers = "WWW-Authenticate: Bearer\r\n";
  if (const auto delay = contract::GetRetryDelay(status)) {
    // The header has whole seconds.
    const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(*delay, absl::Seconds(1)));
    refusal.headers += fmt::format("Retry-After: {}\r\n", std::max<int64_t>(seconds, 1));
  }
  return refusal;
}

std::optional<Refusal> RefuseHost(const Head& head, const Cors& cors, const Hosts& hosts) {
  if (cors.IsAllowed(head.origin) || hosts.MayAsk(head.host)) return std::nullopt;
  return Refuse(421, absl::StatusCode::kPermissionDenied, "HOST_NOT_ALLOWED",
                fmt::format("this broker does not answer to the name {} here; use localhost or its "
                            "address, or let its operator add the name to http.allowed_hosts",
                            Quoted(head.host)));
}

std::variant<Route, Refusal> RouteOf(const Head& head, const Methods& methods, const Cors& cors,
                                     std::span<const Asset> page) {
  if (!head.is_http11) {
    return Refuse(505, absl::StatusCode::kUnimplemented, "WRONG_HTTP_VERSION",
                  "the broker speaks HTTP/1.1 here");
  }
  if (!cors.MayCall(head.origin, head.host)) {
    return Refuse(403, absl::StatusCode::kPermissionDenied, "ORIGIN_NOT_ALLOWED",
                  fmt::format("pages of {} may not call this broker; its operator can add the "
                              "origin to http.allowed_origins",
                              Quoted(head.origin)));
  }
  if (const std::optional<Route> probe = ProbeOf(head)) return RouteOfRead(head, *probe);
  if (const Asset* const asset = FindAsset(page, head.path)) {
    return RouteOfRead(head, {.kind = Route::Kind::kPage, .asset = asset});
  }
  if (head.method == "OPTIONS" && !head.origin.empty())
    return Route{.kind = Route::Kind::kPreflight};
  return RouteOfCall(head, methods);
}

}  // namespace muster::http
