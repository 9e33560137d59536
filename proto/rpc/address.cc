#include "rpc/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <cctype>
#include <charconv>

#include "absl/status/status.h"

namespace muster::rpc {
namespace {

constexpr std::string_view kTls = "tls:";

absl::Status BadAddress(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(
      fmt::format("broker address \"{}\": {}; write unix:PATH, HOST:PORT or tls:HOST:PORT, "
                  "e.g. unix:/var/lib/muster/broker.sock or 127.0.0.1:7070",
                  text, problem));
}

// gRPC reads the path as part of a URI.
std::string PercentEncode(std::string_view path) {
  std::string encoded;
  for (char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("/-._~").find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

absl::StatusOr<Address> ParseUnix(std::string_view text) {
  std::string_view path = text.substr(std::string_view("unix:").size());
  // unix:///absolute, as URIs have it.
  if (path.starts_with("///")) path.remove_prefix(2);
  if (path.empty()) return BadAddress(text, "the path is empty");
  constexpr size_t kMaxPath = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.size() > kMaxPath) {
    return BadAddress(text, fmt::format("the path has {} bytes and Linux allows {} for a socket",
                                        path.size(), kMaxPath));
  }
  return Address{std::string(text), "unix:" + PercentEncode(path), std::string(path)};
}

absl::StatusOr<Address> ParseTcp(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (text.starts_with('/') || text.starts_with("./")) {
    return BadAddress(text, fmt::format("there is no port; did you mean unix:{}?", text));
  }
  if (colon == std::string_view::npos) return BadAddress(text, "there is no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535) {
    return BadAddress(text, fmt::format("\"{}\" is not a port", port));
  }
  if (host.empty()) return BadAddress(text, "there is no host");
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != std::string_view::npos) {
    return BadAddress(text, "an IPv6 address goes in brackets, as in [::1]:7070");
  }
  const std::string bare(bracketed ? host.substr(1, host.size() - 2) : host);
  in6_addr address;
  if (bracketed && inet_pton(AF_INET6, bare.c_str(), &address) != 1) {
    return BadAddress(text, fmt::format("\"{}\" is not an IPv6 address", bare));
  }
  if (bracketed) return Address{std::string(text), fmt::format("ipv6:[{}]:{}", bare, number), ""};
  if (inet_pton(AF_INET, bare.c_str(), &address) == 1) {
    return Address{std::string(text), fmt::format("ipv4:{}:{}", bare, number), ""};
  }
  for (char c : bare) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_') {
      return BadAddress(text, fmt::format("\"{}\" is not a host name", bare));
    }
  }
  return Address{std::string(text), fmt::format("dns:///{}:{}", bare, number), ""};
}

}  // namespace

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  if (text.starts_with("unix:")) return ParseUnix(text);
  if (!text.starts_with(kTls)) return ParseTcp(text);
  absl::StatusOr<Address> address = ParseTcp(text.substr(kTls.size()));
  if (!address.ok()) return address.status();
  address->text = std::string(text);
  address->is_tls = true;
  return address;
}

}  // namespace muster::rpc
