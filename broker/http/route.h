// Decides from the head of a request which call, file or probe it asks for, or why it is refused.
// Pure.
#ifndef MUSTER_BROKER_HTTP_ROUTE_H_
#define MUSTER_BROKER_HTTP_ROUTE_H_

#include <optional>
#include <span>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/http/codec.h"
#include "broker/http/cors.h"
#include "broker/http/hosts.h"
#include "broker/http/methods.h"
#include "broker/http/page.h"
#include "broker/http/request.h"

namespace muster::http {

struct Route {
  enum class Kind { kCall, kHealth, kReady, kMetrics, kPreflight, kPage };
  Kind kind = Kind::kCall;
  // These belong to a call:
  const Method* method = nullptr;
  Codec codec = {};
  std::optional<absl::Duration> timeout = {};
  // The file of the web page, with kPage.
  const Asset* asset = nullptr;
};

struct Refusal {
  absl::Status status;
  int http_status = 0;
  std::string headers = {};  // lines of the answer's head
  // If set, the answer is a stream of this form that ends with the error, as its clients expect.
  std::optional<Codec> stream = {};
};

// An error with the status that its code has in HTTP, and the headers that go with it.
Refusal RefusalOf(const absl::Status& status);

std::variant<Route, Refusal> RouteOf(const Head& head, const Methods& methods, const Cors& cors,
                                     std::span<const Asset> page);

// Refuses what is answered to anybody, if the name in Host may not ask for it (hosts.h). A token in
// the head changes nothing, because nobody has looked at it. Pages of allowed origins are known.
std::optional<Refusal> RefuseHost(const Head& head, const Cors& cors, const Hosts& hosts);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_ROUTE_H_
