#include "broker/http/cors.h"

#include <fmt/format.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "contract/text.h"

namespace muster::http {
namespace {

// A browser asks again after this time.
constexpr int kMaxAgeSeconds = 7200;

}  // namespace

absl::Status CheckOrigin(std::string_view origin) {
  const size_t scheme = origin.find("://");
  const std::string_view host = scheme == origin.npos ? "" : origin.substr(scheme + 3);
  const bool is_web = origin.starts_with("http://") || origin.starts_with("https://");
  const bool is_plain = absl::c_all_of(origin, [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && !absl::ascii_isupper(c);
  });
  if (is_web && is_plain && !host.empty() && host.find_first_of("/*?#@") == host.npos)
    return absl::OkStatus();
  return absl::InvalidArgumentError(ToAbsl(
      fmt::format("\"{}\" is no origin of pages; write it as a browser does, without a path: "
                  "https://jobs.example.org or http://localhost:5173",
                  origin)));
}

bool Cors::IsAllowed(std::string_view origin) const {
  return !origin.empty() && absl::c_linear_search(allowed_, origin);
}

bool Cors::MayCall(std::string_view origin, std::string_view host) const {
  if (origin.empty() || IsAllowed(origin)) return true;
  const size_t scheme = origin.find("://");
  return scheme != origin.npos && !host.empty() && origin.substr(scheme + 3) == host;
}

std::string Cors::Headers(std::string_view origin) const {
  if (!IsAllowed(origin)) return "";
  return fmt::format(
      "Access-Control-Allow-Origin: {}\r\nAccess-Control-Expose-Headers: Retry-After\r\nVary: "
      "Origin\r\n",
      origin);
}

std::string Cors::PreflightHeaders(std::string_view origin) const {
  if (!IsAllowed(origin)) return "";
  return fmt::format(
      "Access-Control-Allow-Origin: {}\r\nAccess-Control-Allow-Methods: POST\r\n"
      "Access-Control-Allow-Headers: Authorization, Content-Type, Connect-Protocol-Version, "
      "Connect-Timeout-Ms, X-User-Agent\r\nAccess-Control-Max-Age: {}\r\nVary: Origin\r\n",
      origin, kMaxAgeSeconds);
}

}  // namespace muster::http
