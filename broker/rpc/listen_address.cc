#include "broker/rpc/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

#include "contract/text.h"

namespace muster::broker {
namespace {

absl::Status Bad(std::string_view address, std::string_view why) {
  return absl::InvalidArgumentError(
      ToAbsl(fmt::format("cannot listen on \"{}\": {}", address, why)));
}

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

absl::StatusOr<std::string> CheckListenAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) {
    return Bad(address, "it has no port; write HOST:PORT, for example 127.0.0.1:7070");
  }
  std::string host(address.substr(0, colon));
  const std::string_view digits = address.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    return Bad(address, "the port is a number from 0 (any free one) to 65535");
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") host = "127.0.0.1";
  if (!IsLoopback(host)) {
    return Bad(
        address,
        "without TLS the broker listens on this machine only; use 127.0.0.1:PORT or [::1]:PORT, "
        "and reach it from elsewhere through ssh -L");
  }
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

}  // namespace muster::broker
