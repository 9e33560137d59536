#include "broker/http/page.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "contract/text.h"

namespace muster::http {
namespace {

// The first words of the addresses that clients/web/src/main.tsx knows.
constexpr std::array<std::string_view, 5> kViews{"jobs", "clusters", "use", "admin", "login"};

// The policy allows only the broker's own files, and no frame around them. So a name or a log that
// got into the page as HTML could load and run nothing.
constexpr std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'self'; {}base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n";
// A year is the longest lifetime that servers usually give to caches.
constexpr std::string_view kForGood = "public, max-age=31536000, immutable";
// The browser asks each time, and the answer says that nothing has changed.
constexpr std::string_view kAskFirst = "no-cache";

// Empty if it has none that a policy can name: another character would end the directive.
std::string OriginOf(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == url.npos) return "";
  const std::string_view origin = url.substr(0, url.find('/', scheme + 3));
  const bool is_plain = absl::c_all_of(origin.substr(scheme + 3), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == ':' ||
           c == '[' || c == ']';
  });
  const bool is_web = origin.starts_with("https://") || origin.starts_with("http://");
  return is_web && is_plain ? std::string(origin) : "";
}

bool IsView(std::string_view path) {
  if (!path.starts_with('/')) return false;
  path.remove_prefix(1);
  return absl::c_linear_search(kViews, path.substr(0, path.find('/')));
}

bool IsZero(std::string_view weight) {
  return !weight.empty() && weight.find_first_not_of("0.") == weight.npos;
}

bool TakesGzip(std::string_view accept_encoding) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(accept_encoding), ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> words = absl::StrSplit(part, ';');
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(words.front()), "gzip")) continue;
    if (words.size() == 1) return true;
    const std::string weight(absl::StripAsciiWhitespace(words[1]));
    return !(absl::StartsWithIgnoreCase(weight, "q=") && IsZero(weight.substr(2)));
  }
  return false;
}

bool HasTag(std::string_view if_none_match, std::string_view etag) {
  const std::vector<std::string> tags = absl::StrSplit(ToAbsl(if_none_match), ',');
  for (std::string_view tag : tags) {
    while (tag.starts_with(' ')) tag.remove_prefix(1);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag || tag == "*") return true;
  }
  return false;
}

}  // namespace

const Asset* FindAsset(std::span<const Asset> assets, std::string_view path) {
  if (assets.empty()) return nullptr;
  const auto found = absl::c_find_if(assets, [path](const Asset& one) { return one.path == path; });
  if (found != assets.end()) return &*found;
  return IsView(path) ? &assets.front() : nullptr;
}

Page PageFor(std::span<const Asset> assets, const std::vector<std::string>& issuers) {
  std::string connect;
  for (const std::string& issuer : issuers) {
    if (const std::string origin = OriginOf(issuer); !origin.empty()) connect += " " + origin;
  }
  if (!connect.empty()) connect = fmt::format("connect-src 'self'{}; ", connect);
  return {.assets = assets, .headers = fmt::format(kPageHeaders, connect)};
}

AssetAnswer AnswerOf(const Asset& asset, const Head& head, std::string_view page_headers) {
  const bool is_page = asset.path == "/";
  AssetAnswer answer{.content_type = asset.content_type,
                     .cache = is_page ? kAskFirst : kForGood,
                     .headers = fmt::format("{}ETag: {}\r\nVary: Accept-Encoding\r\n",
                                            is_page ? page_headers : "", asset.etag)};
  if (HasTag(head.if_none_match, asset.etag)) {
    answer.http_status = 304;
    answer.content_type = "";
    return answer;
  }
  answer.body = asset.plain;
  if (TakesGzip(head.accept_encoding)) {
    answer.headers += "Content-Encoding: gzip\r\n";
    answer.body = asset.gzip;
  }
  return answer;
}

}  // namespace muster::http
