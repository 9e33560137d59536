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

bool IsIpAddress(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

struct Place {
  std::string host;  // without brackets
  uint16_t port = 0;

  std::string Text() const {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
  }
};

absl::StatusOr<Place> Split(std::string_view address, std::string_view example) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) {
    return Bad(address, fmt::format("it has no port; write HOST:PORT, for example {}", example));
  }
  Place place{.host = std::string(address.substr(0, colon))};
  const std::string_view digits = address.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), place.port);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    return Bad(address, "the port is a number from 0 (any free one) to 65535");
  }
  std::string& host = place.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") host = "127.0.0.1";
  return place;
}

// `for_others` is the setting for other machines.
absl::StatusOr<std::string> CheckLoopback(std::string_view address, std::string_view example,
                                          std::string_view for_others) {
  const absl::StatusOr<Place> place = Split(address, example);
  if (!place.ok()) return place.status();
  if (IsLoopback(place->host)) return place->Text();
  return Bad(address,
             fmt::format("without TLS the broker listens on this machine only; use 127.0.0.1:PORT "
                         "or [::1]:PORT, or {} for other machines",
                         for_others));
}

}  // namespace

absl::StatusOr<std::string> CheckListenAddress(std::string_view address) {
  return CheckLoopback(address, "127.0.0.1:7070", "tls.listen");
}

absl::StatusOr<std::string> CheckHttpListenAddress(std::string_view address) {
  return CheckLoopback(address, "127.0.0.1:7071", "http.tls_listen");
}

absl::StatusOr<std::string> CheckTlsListenAddress(std::string_view address) {
  const absl::StatusOr<Place> place = Split(address, "0.0.0.0:7443");
  if (!place.ok()) return place.status();
  if (IsIpAddress(place->host)) return place->Text();
  return Bad(address, "the host is not an IP address of this machine; 0.0.0.0 means all of them");
}

}  // namespace muster::broker
