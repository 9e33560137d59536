// Says by which names the listener on loopback may be asked for what needs no credential. Pure.
//
// A page of evil.example can let its own name mean 127.0.0.1 after it was loaded (DNS rebinding).
// The browser then takes the broker for the page's own site, and sends the name in Host. Only a
// name can be made to mean another address: an address in Host is that of the connection.
#ifndef MUSTER_BROKER_HTTP_HOSTS_H_
#define MUSTER_BROKER_HTTP_HOSTS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace muster::http {

// INVALID_ARGUMENT: no Host names the text, so that it would allow nothing.
absl::Status CheckHost(std::string_view name);

class Hosts {
 public:
  explicit Hosts(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}

  // `host` is the header of a request, with or without a port; empty: it has none, so that it comes
  // from no browser.
  bool MayAsk(std::string_view host) const;

 private:
  const std::vector<std::string> allowed_;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_HOSTS_H_
