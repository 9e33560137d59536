#include "digest/base64url.h"

#include "absl/strings/escaping.h"

namespace muster {

std::optional<std::string> FromBase64Url(std::string_view text) {
  std::string bytes;
  // Abseil's decoder is lenient; what it made is only taken if the encoder gives the same text.
  if (!absl::WebSafeBase64Unescape({text.data(), text.size()}, &bytes)) return std::nullopt;
  if (ToBase64Url(bytes) != text) return std::nullopt;
  return bytes;
}

std::string ToBase64Url(std::string_view bytes) {
  return absl::WebSafeBase64Escape({bytes.data(), bytes.size()});
}

}  // namespace muster
