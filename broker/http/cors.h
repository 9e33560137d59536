// The rules for pages of other origins (CORS): closed, unless the operator names the origin. Pure.
//
// https://fetch.spec.whatwg.org/#http-cors-protocol
#ifndef MUSTER_BROKER_HTTP_CORS_H_
#define MUSTER_BROKER_HTTP_CORS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace muster::http {

// Returns INVALID_ARGUMENT if no browser ever sends the text as an origin, because it would allow
// nothing.
absl::Status CheckOrigin(std::string_view origin);

class Cors {
 public:
  explicit Cors(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}

  // `origin` and `host` are headers of a request; an empty one is missing. A page of the broker's
  // own host may call, and so may any caller that is not a page.
  bool MayCall(std::string_view origin, std::string_view host) const;
  // Returns the lines of an answer's head that let the page read it; empty if it may not.
  std::string Headers(std::string_view origin) const;
  // Returns the same for the browser's question before a call (OPTIONS).
  std::string PreflightHeaders(std::string_view origin) const;
  // The operator has named the origin.
  bool IsAllowed(std::string_view origin) const;

 private:
  const std::vector<std::string> allowed_;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_CORS_H_
