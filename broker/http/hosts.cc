#include "broker/http/hosts.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "contract/characters.h"
#include "contract/text.h"

namespace muster::http {
namespace {

// The longest name of DNS.
constexpr size_t kMaxNameBytes = 253;

bool IsAddress(int family, std::string_view text) {
  in6_addr address;
  return inet_pton(family, std::string(text).c_str(), &address) == 1;
}

// Returns the name in Host: in lower case, without the port and the dot of the root.
std::string NameIn(std::string_view host) {
  host = host.substr(0, host.rfind(':'));
  if (host.ends_with('.')) host.remove_suffix(1);
  return absl::AsciiStrToLower(ToAbsl(host));
}

}  // namespace

absl::Status CheckHost(std::string_view name) {
  const bool is_name = absl::c_all_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '-' || c == '.' ||
           c == '_';
  });
  if (is_name && !name.empty() && name.size() <= kMaxNameBytes && !name.ends_with('.'))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      ToAbsl(fmt::format("{} is no name of a host; write it in lower case and without a port: "
                         "jobs.example.org",
                         contract::Quoted(name))));
}

bool Hosts::MayAsk(std::string_view host) const {
  if (host.empty()) return true;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end != host.npos && IsAddress(AF_INET6, host.substr(1, end - 1));
  }
  const std::string name = NameIn(host);
  // No name server is asked for localhost and the names below it (RFC 6761).
  return name == "localhost" || name.ends_with(".localhost") || IsAddress(AF_INET, name) ||
         absl::c_linear_search(allowed_, name);
}

}  // namespace muster::http
